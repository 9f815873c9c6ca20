"""The Kotlin code of `examples/android`, compiled with programs that tokenise."""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
SOURCES = ROOT / "examples" / "android" / "src" / "main" / "kotlin"
PROGRAMS = ROOT / "tests" / "export" / "programs" / "kotlin"


def without_kotlin():
    return not (shutil.which("kotlinc") and shutil.which("java"))


@functools.cache
def compiled():
    """Returns the folder of the program x.jar, a `tempfile.TemporaryDirectory`."""
    folder = tempfile.TemporaryDirectory()
    jar = pathlib.Path(folder.name) / "x.jar"
    command = ["kotlinc", "-Werror", "-include-runtime", "-d", jar, SOURCES, PROGRAMS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return folder


def run(main, *arguments, lines, **environment):
    """Returns the lines that a program prints for lines."""
    jar = pathlib.Path(compiled().name) / "x.jar"
    done = subprocess.run(
        ["java", "-cp", jar, main, *map(str, arguments)],
        input="\n".join(lines).encode(), capture_output=True, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().removesuffix("\n").split("\n")
