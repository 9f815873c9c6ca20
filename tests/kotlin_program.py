"""The Kotlin code of `examples/android`, compiled with programs that tokenise."""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

from documents import blocks

ROOT = pathlib.Path(__file__).parents[1]
SOURCES = ROOT / "examples" / "android" / "src" / "main" / "kotlin"
PROGRAMS = ROOT / "tests" / "export" / "programs" / "kotlin"


def without_kotlin():
    return not (shutil.which("kotlinc") and shutil.which("java"))


def activity_of_the_page():
    """Returns the code of the activity in `docs/android.md`."""
    (code,) = (
        block.code
        for block in blocks("docs/android.md", "kotlin")
        if block.code.startswith("import ")
    )
    return code


@functools.cache
def compiled():
    """Returns the folder of the program x.jar, a `tempfile.TemporaryDirectory`.

    The activity on the page for Android is compiled with it.
    """
    folder = tempfile.TemporaryDirectory()
    jar, page = (pathlib.Path(folder.name) / name for name in ("x.jar", "Page.kt"))
    page.write_text(activity_of_the_page(), "utf-8")
    command = ["kotlinc", "-Werror", "-include-runtime", "-d", jar, SOURCES, PROGRAMS, page]
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
