"""The Swift code of `examples/ios`, compiled with a program that tokenises and translates.

LiteRT's library for Swift does not run here: `swift/` has a module of its name with the parts that
the example uses, in which LiteRT for Python runs the model.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
SOURCES = ROOT / "examples" / "ios"
PROGRAMS = ROOT / "tests" / "export" / "programs"


def missing():
    """Returns the program that compiles the code but is not installed, a text."""
    return "" if shutil.which("swiftc") else "swiftc"


@functools.cache
def compiled():
    """Returns the folder of the program x, a `tempfile.TemporaryDirectory`."""
    folder = tempfile.TemporaryDirectory()
    swift = PROGRAMS / "swift"
    process, litert = swift / "Process.swift", swift / "TensorFlowLite.swift"
    programs = [swift / "Decompression.swift", swift / "main.swift", process]
    module = ["-parse-as-library", "-emit-module", "-emit-object", "-wmo"]
    for arguments in (
        [*module, "-module-name", "TensorFlowLite", "-o", "TensorFlowLite.o", litert, process],
        ["-I", ".", "-o", "x", "TensorFlowLite.o", *sorted(SOURCES.glob("*.swift")), *programs],
    ):
        command = ["swiftc", "-O", "-warnings-as-errors", *map(str, arguments)]
        done = subprocess.run(command, cwd=folder.name, capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stderr + done.stdout
    return folder


def run(mode, path, *arguments, lines):
    """Returns the lines that the program prints for lines; see `kotlin_program.run`."""
    done = subprocess.run(
        [pathlib.Path(compiled().name) / "x", mode, str(path), *map(str, arguments)],
        input="\n".join(lines).encode(), capture_output=True, timeout=240,
        env={**os.environ, "PYTHON": sys.executable, "PROGRAMS": str(PROGRAMS)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().removesuffix("\n").split("\n")
