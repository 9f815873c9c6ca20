"""The Kotlin code of `examples/android`, compiled with programs that tokenise and translate."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from documents import blocks

ROOT = pathlib.Path(__file__).parents[1]
SOURCES = ROOT / "examples" / "android" / "src" / "main" / "kotlin"
PROGRAMS = ROOT / "tests" / "export" / "programs" / "kotlin"
OLDEST = 1, 7  # whose library has `Regex.matchAt`


@functools.cache
def missing():
    """Returns what is needed to compile and run the code but is not installed, a text."""
    absent = [name for name in ("kotlinc", "java") if not shutil.which(name)]
    if absent:
        return " and ".join(absent)
    version = subprocess.run(["kotlinc", "-version"], capture_output=True, text=True).stderr
    found = re.search(r"kotlinc-jvm (\d+)\.(\d+)", version)
    old = found is None or tuple(map(int, found.groups())) < OLDEST
    return f"kotlinc {'.'.join(map(str, OLDEST))} or later" if old else ""


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


def run(mode, path, *arguments, lines):
    """Returns the lines that a program prints for lines.

    Args:
        mode: The program: `"tokens"` or `"translate"`.
        path: A .tflite file.
        *arguments: Further arguments of the program.
        lines: The lines.
    """
    jar = pathlib.Path(compiled().name) / "x.jar"
    main = {"tokens": "tokens.TokensKt", "translate": "translations.TranslateKt"}[mode]
    interpreter = [sys.executable, PROGRAMS.parent / "interpreter.py", path]
    done = subprocess.run(
        ["java", "-cp", jar, main, *map(str, (path, *arguments))],
        input="\n".join(lines).encode(), capture_output=True, timeout=120,
        env={**os.environ, "INTERPRETER": "\n".join(map(str, interpreter))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().removesuffix("\n").split("\n")
