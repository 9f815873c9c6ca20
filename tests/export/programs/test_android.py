"""The project in `examples/android`: its names and versions, built by Gradle where an SDK is."""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile

import pytest
from kotlin_program import SOURCES

EXAMPLE = SOURCES.parents[2]
PAGE = 2**14  # bytes
LOAD = 1  # the kind of a segment that is loaded

ANDROID = "{http://schemas.android.com/apk/res/android}"


def without_sdk():
    """Returns the reason why the project cannot be built here, or `None`."""
    if not os.environ.get("ANDROID_HOME"):
        return "building the project needs an Android SDK in ANDROID_HOME"
    if not shutil.which("gradle"):
        return "building the project needs gradle, 8.13 or later"
    return ""


def test_files_that_the_project_names_exist():
    """Android's tools look up these names when they build."""
    main = EXAMPLE / "src" / "main"
    manifest, layout, strings = (
        ET.parse(main / name)
        for name in ("AndroidManifest.xml", "res/layout/main.xml", "res/values/strings.xml")
    )
    (activity,) = manifest.iter("activity")
    build = (EXAMPLE / "build.gradle.kts").read_text("utf-8")
    name = activity.attrib[f"{ANDROID}name"].removeprefix(".")
    code = (SOURCES / "translate" / f"{name}.kt").read_text("utf-8")
    assert 'namespace = "translate"' in build and code.startswith("package translate\n")
    assert f"class {name} : Activity()" in code
    texts = {element.attrib["name"] for element in strings.getroot()}
    nodes = [*manifest.iter(), *layout.iter()]
    values = [value for node in nodes for value in node.attrib.values()]
    used = {value.removeprefix("@string/") for value in values if value.startswith("@string/")}
    assert used | {*re.findall(r"R\.string\.(\w+)", code)} == texts
    ids = {value.removeprefix("@+id/") for value in values if value.startswith("@+id/")}
    assert {*re.findall(r"R\.id\.(\w+)", code)} == ids
    assert re.findall(r"R\.layout\.(\w+)", code) == ["main"]


def test_the_versions_of_the_project_agree():
    build, readme, wrapper = (
        (EXAMPLE / name).read_text("utf-8")
        for name in ("build.gradle.kts", "README.md", "gradle/wrapper/gradle-wrapper.properties")
    )
    (litert,) = {*re.findall(r'implementation\("(.*?)"\)', build + readme)}
    assert litert.startswith("com.google.ai.edge.litert:litert:")
    version = tuple(map(int, litert.rpartition(":")[2].split(".")))
    assert version >= (2, 1, 6), "2.0.3 has no `Interpreter`, and a library of 2.1.1 is not aligned"
    (version,) = re.findall(r'gradleVersion = "(.*)"', build)
    (checksum,) = re.findall(r'distributionSha256Sum = "(.{64})"', build)
    assert f"/gradle-{version}-bin.zip\n" in wrapper and f"Gradle {version}," in readme
    assert f"distributionSha256Sum={checksum}\n" in wrapper


def alignment(library):
    """The smallest alignment of the segments of a 64-bit ELF library that are loaded, in bytes.

    Libraries of 32 bits only run on devices with small pages.
    """
    if library[4] != 2:
        return PAGE
    (begin,), (size, count) = (
        struct.unpack_from("<Q", library, 32),
        struct.unpack_from("<HH", library, 54),
    )
    headers = [library[begin + number * size :][:size] for number in range(count)]
    loaded = [header for header in headers if struct.unpack_from("<I", header) == (LOAD,)]
    return min(struct.unpack_from("<Q", header, 48)[0] for header in loaded)


def test_the_alignment_of_a_library_is_read():
    def library(*segments):
        header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        header += struct.pack(
            "<HHIQQQIHHHHHH", 3, 183, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0
        )
        rows = (struct.pack("<IIQQQQQQ", kind, 4, 0, 0, 0, 0, 0, align) for kind, align in segments)
        return header + b"".join(rows)

    assert alignment(library((LOAD, PAGE), (6, 8), (LOAD, 65536))) == PAGE
    assert alignment(library((LOAD, PAGE), (LOAD, 4096))) == 4096
    assert alignment(pathlib.Path(sys.executable).resolve().read_bytes()) >= 4096


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(bool(without_sdk()), reason=without_sdk() or "it is built")
def test_the_project_builds(export, tmp_path):
    """The small model is stored uncompressed in the package, so that it can be mapped."""
    project = tmp_path / "android"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("build", ".gradle", "assets"))
    assets = project / "src" / "main" / "assets"
    assets.mkdir()
    shutil.copy(export("none")[0], assets / "model.tflite")
    command = ["gradle", "--no-daemon", "--console=plain", "assembleDebug"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    (package,) = project.glob("build/outputs/apk/debug/*.apk")
    with zipfile.ZipFile(package) as archive:
        model = archive.getinfo("assets/model.tflite")
        assert model.compress_type == zipfile.ZIP_STORED
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        assert libraries and min(map(alignment, map(archive.read, libraries))) >= PAGE
        assert archive.read(model) == (assets / "model.tflite").read_bytes()
        assert any(name.endswith(".so") for name in archive.namelist())  # LiteRT's native library
