"""The Python environment of the other libraries, which may be another one than ours."""

import json
import subprocess

from measurements import BenchmarkError


def versions_in(python, packages, install):
    """Returns the versions of packages in an environment.

    Args:
        python: Path of its Python.
        packages: Names of the packages.
        install: Command that installs them, for the error message.

    Raises:
        BenchmarkError: If one of them is missing.
    """
    code = (
        "import importlib.metadata as metadata, json\n"
        f"print(json.dumps({{p: metadata.version(p) for p in {sorted(packages)}}}))"
    )
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError as error:
        raise BenchmarkError(f"{python}: {error.strerror}. See --peers-python.") from error
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1]
        raise BenchmarkError(f"{python}: {last}. Install: {install}")
    return json.loads(done.stdout)
