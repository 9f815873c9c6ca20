"""Commands that install what an optional feature needs."""

import pathlib
import shutil
import sys

DISTRIBUTION = "keras-transformer-kit"


def install_hint(extra: str) -> str:
    """Returns the command that adds an extra to this installation of the package.

    The command uses the source of the installation, which pip records in `direct_url.json`: a
    package index, a checkout, a wheel or a repository.

    Args:
        extra: Name of an extra in `pyproject.toml`, such as `"plot"`.
    """
    return install_command(_requirement(extra))


def install_command(requirement: str) -> str:
    """Returns the command that installs a package, quoted for a shell, into this environment."""
    pip = shutil.which("pip")
    if pip is None or pathlib.Path(pip).parent != pathlib.Path(sys.executable).parent:
        pip = f"{sys.executable} -m pip"  # `pip` would install into another environment
    else:
        pip = "pip"
    return f"{pip} install {requirement}"


def _requirement(extra: str) -> str:
    """Returns the arguments of `pip install`."""
    # Imported here, because they take 7 MB in every process that runs a .tflite file.
    import importlib.metadata
    import json
    import urllib.parse
    import urllib.request

    try:
        record = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        record = None
    if record is None:  # from an index
        return f'"{DISTRIBUTION}[{extra}]"'
    record = json.loads(record)
    url = urllib.parse.urlsplit(record["url"])
    if url.scheme == "file":
        editable = "-e " * record.get("dir_info", {}).get("editable", False)
        return f'{editable}"{urllib.request.url2pathname(url.path)}[{extra}]"'
    address = record["url"]
    if version_control := record.get("vcs_info"):
        address = f"{version_control['vcs']}+{address}@{version_control['commit_id']}"
    return f'"{DISTRIBUTION}[{extra}] @ {address}"'
