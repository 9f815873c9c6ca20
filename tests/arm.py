"""An ARM processor under emulation: a folder with qemu-user and an ARM build of Python with LiteRT.

Debian's packages and the wheels are unpacked into the user's cache. Nothing is installed and no
special rights are needed. It takes Linux on x86-64, a download of 130 MB from a Debian mirror and
the package index, and 200 MB of disk. The mirror is the one that this system's apt uses; on a
system without one, set `KERAS_TRANSFORMER_DEBIAN` to its address. `python tests/arm.py` prepares
the folder in advance; otherwise the tests do so when they first run.

qemu comes from Debian 13. Older versions, such as the 7.2 of Debian 12, show the emulated program
the host's /proc/cpuinfo, and LiteRT then dies with signal 11.
"""

import hashlib
import http.client
import importlib.metadata
import io
import lzma
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

RELEASE, PYTHON = "trixie", "3.13"
PACKAGES = {
    "amd64": ["qemu-user"],
    "arm64": [
        f"python{PYTHON}-minimal", f"libpython{PYTHON}-minimal", f"libpython{PYTHON}-stdlib",
        "libc6", "libexpat1", "libffi8", "libgcc-s1", "libstdc++6", "zlib1g",
    ],
}  # fmt: skip
VARIABLE = "KERAS_TRANSFORMER_DEBIAN"
# A line with a mirror's address, in either format of apt's files.
SOURCE = re.compile(r"^(?:deb|URIs:)\s(?:.*\s)?https?://(\S+/debian)/?(?:\s|$)", re.MULTILINE)
QEMU = "usr/bin/qemu-aarch64"  # the only file of qemu-user that is extracted
# The errors that an incomplete or wrong download causes.
BROKEN = (http.client.HTTPException, lzma.LZMAError, tarfile.TarError)


class UnavailableError(Exception):
    """Raised if the emulator is not available; the message gives the reason."""


class Arm:
    """A prepared folder.

    Args:
        folder: The folder, which `prepare` returns.
    """

    def __init__(self, folder):
        self.folder = folder

    def python(self, processor, code, *arguments):
        """Runs Python code on one of qemu's processors and returns its output."""
        root = self.folder / "root"
        done = subprocess.run(
            [
                self.folder / QEMU, "-cpu", processor, "-L", root,
                root / "usr" / "bin" / f"python{PYTHON}", "-c", code, *map(str, arguments),
            ],
            env={"PYTHONPATH": str(self.folder / "site"), "PATH": os.environ["PATH"]},
            capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, f"{processor}: exit {done.returncode}\n{done.stderr[-2000:]}"
        return done.stdout


def prepare():
    """Returns the folder with the emulator and prepares it first if necessary.

    Raises:
        UnavailableError: If the emulator cannot be prepared on this machine.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise UnavailableError("the emulator is a program for Linux on x86-64")
    version = importlib.metadata.version("ai-edge-litert")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "keras_transformer" / f"arm-{RELEASE}-litert-{version}"
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            made = pathlib.Path(temporary, "made")
            _unpack_debian(made)
            _install_wheels(made / "site", version)
            if not folder.exists():  # another process may have prepared it in the meantime
                made.rename(folder)
    except (*BROKEN, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        raise UnavailableError(
            "the emulator cannot be installed, which takes a mirror of Debian and a package index: "
            f"{_reason(error)}"
        ) from error
    return folder


def _unpack_debian(folder):
    mirror = _mirror()
    for architecture, names in PACKAGES.items():
        index = _index(mirror, architecture)
        for name in names:
            package = _download(f"{mirror}/{index[name]['Filename']}")
            if hashlib.sha256(package).hexdigest() != index[name]["SHA256"]:
                raise ValueError(f"{index[name]['Filename']} is damaged")
            if architecture == "amd64":
                _extract(package, folder, f"./{QEMU}")
            else:
                _extract(package, folder / "root")
    (folder / "root" / "lib").symlink_to("usr/lib")


def _mirror():
    """Returns the address of a Debian mirror: from a variable, or from this system's apt.

    The address is changed to https because nothing else authenticates the mirror's index.
    """
    if VARIABLE in os.environ:
        return os.environ[VARIABLE].rstrip("/")
    sources = pathlib.Path("/etc/apt")
    for path in sorted([*sources.glob("sources.list*"), *sources.glob("sources.list.d/*")]):
        text = path.read_text() if path.is_file() else ""
        if found := re.search(
            r"^(?:deb|URIs:)\s(?:.*\s)?https?://(\S+/debian)/?(?:\s|$)", text, re.M
        ):
            return f"https://{found[1]}"
    raise ValueError(f"apt names none here; {VARIABLE} may hold the address of one")


def _index(mirror, architecture):
    """Returns the fields of every package in the index, by package name."""
    url = f"{mirror}/dists/{RELEASE}/main/binary-{architecture}/Packages.xz"
    packages = {}
    for text in lzma.decompress(_download(url)).decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
        packages[fields.get("Package")] = fields
    return packages


def _download(url):
    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read()


def _extract(package, folder, only=None):
    """Extracts all files of a .deb, an `ar` archive around a tar file, or only one of them."""
    start = len(b"!<arch>\n")
    while not package[start:].startswith(b"data.tar"):
        start += 60 + int(package[start + 48 : start + 58]) + 1 & ~1
    content = io.BytesIO(package[start + 60 :])
    with tarfile.open(fileobj=content, mode="r|*") as archive:
        for item in archive:
            if only in (None, item.name):
                archive.extract(item, folder, filter="tar")
            if item.name == only:
                return


def _install_wheels(folder, version):
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 27, 28)]
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "--no-deps",
            "--only-binary=:all:", f"--python-version={PYTHON}", *platforms,
            f"ai-edge-litert=={version}", "numpy",
        ],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    shutil.rmtree(folder / "bin", ignore_errors=True)


def _reason(error):
    text = getattr(error, "stderr", None) or str(error) or repr(error)
    return text.strip().split("\n")[-1]


if __name__ == "__main__":
    try:
        prepare()
    except UnavailableError as error:
        sys.exit(f"No ARM processor under emulation: {error}")
