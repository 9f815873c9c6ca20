"""The command that installs an extra, for every way to install the package."""

import importlib.metadata
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import tomlkit

from keras_transformer import installation
from keras_transformer.installation import install_hint

ROOT = pathlib.Path(__file__).parents[1]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Installed:
    """A distribution that pip installed from `origin`, the content of direct_url.json."""

    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.fixture
def pip_on_the_path(monkeypatch):
    monkeypatch.setattr(
        shutil, "which", lambda name: str(pathlib.Path(sys.executable).with_name(name))
    )


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, 'pip install "keras-transformer-kit[plot]"'),
        (
            {"url": "file:///home/me/a%20checkout", "dir_info": {"editable": True}},
            'pip install -e "/home/me/a checkout[plot]"',
        ),
        ({"url": "file:///home/me/kit", "dir_info": {}}, 'pip install "/home/me/kit[plot]"'),
        (
            {"url": "file:///tmp/kit-1-py3-none-any.whl", "archive_info": {"hash": "sha256=0"}},
            'pip install "/tmp/kit-1-py3-none-any.whl[plot]"',
        ),
        (
            {"url": "https://host/kit.whl", "archive_info": {}},
            'pip install "keras-transformer-kit[plot] @ https://host/kit.whl"',
        ),
        (
            {"url": "https://host/kit.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f'pip install "keras-transformer-kit[plot] @ git+https://host/kit.git@{COMMIT}"',
        ),
    ],
    ids=["index", "editable", "checkout", "wheel", "address", "git"],
)  # fmt: skip
def test_the_command_installs_from_the_origin_of_the_package(
    origin, command, monkeypatch, pip_on_the_path
):
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(origin))
    assert install_hint("plot") == command


def test_a_package_that_is_not_installed_comes_from_a_package_index(monkeypatch, pip_on_the_path):
    def distribution(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)
    assert install_hint("plot") == 'pip install "keras-transformer-kit[plot]"'


@pytest.mark.parametrize("other", [None, "/elsewhere/bin/pip"])
def test_pip_belongs_to_this_environment(other, monkeypatch):
    """An environment may not be active: plain `pip` would then install into another one."""
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(None))
    monkeypatch.setattr(shutil, "which", lambda name: other)
    monkeypatch.setattr(sys, "executable", "/home/me/.venv/bin/python")
    assert install_hint("plot") == (
        '/home/me/.venv/bin/python -m pip install "keras-transformer-kit[plot]"'
    )
    monkeypatch.setattr(shutil, "which", lambda name: "/home/me/.venv/bin/pip")
    assert install_hint("plot") == 'pip install "keras-transformer-kit[plot]"'


def test_messages_name_extras_that_exist():
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == installation.DISTRIBUTION
    sources = [
        path.read_text("utf-8")
        for folder in ("keras_transformer", "training", "export")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = {
        name for text in sources for name in re.findall(r"""install_hint\(["'](\w+)["']\)""", text)
    }
    assert named == {*project["optional-dependencies"]} - {"all", "dev", "docs", "examples"}
    (here,) = [text for text in sources if "pip install" in text and "serving-api" not in text]
    assert here.startswith('"""Commands that install'), "every other message calls `install_hint`"


def promised():
    """Returns the Pythons of the classifiers, such as 3.11, in order."""
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    begin = "Programming Language :: Python :: 3."
    classifiers = [text for text in project["classifiers"] if text.startswith(begin)]
    minors = [int(text.removeprefix(begin)) for text in classifiers]
    assert minors == [*range(minors[0], minors[-1] + 1)]
    assert project["requires-python"] == f">=3.{minors[0]},<3.{minors[-1] + 1}"
    return [f"3.{minor}" for minor in minors]


def test_every_place_promises_the_same_pythons():
    first, *_, last = versions = promised()
    both = f"Python {first} to {last}"
    for name in ("README.md", "Makefile", "docs/quickstart.md"):
        text = (ROOT / name).read_text("utf-8")
        assert both in text
        assert {*re.findall(r"Python (3\.\d+ to 3\.\d+)", text)} == {f"{first} to {last}"}
    assert f"python-{first}_to_{last}-blue" in (ROOT / "README.md").read_text("utf-8")
    names = f"You need Python {', '.join(versions[:-1])} or {last},"
    assert names in (ROOT / "docs" / "install.md").read_text("utf-8")
    wrong = f"Python below {first} or above {last}"
    assert wrong in (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    tested = (ROOT / "docs" / "tested.md").read_text("utf-8")
    assert all(f" {version}" in tested for version in versions)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("version", [(3, 10, 13), (3, 14, 0)])
def test_make_with_another_python_says_so_before_it_downloads_anything(version, tmp_path):
    shown = ".".join(map(str, version))
    fake = tmp_path / "python"
    change = f"import sys; sys.version_info = {version}; sys.version = '{shown} (main)'; "
    fake.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] || {{ touch "{tmp_path}/more"; exit 1; }}\n'
        f'exec "{sys.executable}" -c "{change}exec(sys.argv[1])" "$2"\n'
    )
    fake.chmod(0o755)
    venv = tmp_path / "venv"
    options = [f"PYTHON={fake}", f"VENV={venv}"]
    done = subprocess.run(
        ["make", "test", *options], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    first, *_, last = promised()
    message = f"Python {first} to {last} is needed; this is {shown}. Choose one: make PYTHON="
    assert done.returncode and message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["python"]
