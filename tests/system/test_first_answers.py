"""Modules that commands and programs import: opened exports need neither TensorFlow nor Keras."""

import subprocess
import sys

import pytest
from pipelines import LINES, embedder, translator, write_run

from keras_transformer.export import export_ctranslate2, export_litert, export_onnx

HEAVY = (
    "tensorflow", "keras", "tensorflow_text", "tensorflow_datasets", "tensorboard", "scipy",
    "pydantic", "rich", "matplotlib", "sacrebleu", "jinja2", "babel", "sklearn", "safetensors",
)  # fmt: skip
# Runs a command, or a program, and writes the heavy modules at its end.
COMMAND = "from keras_transformer.cli.main import main; main()"
PROGRAM = "import keras_transformer; print(keras_transformer.open(sys.argv[1])('a cat runs'))"
REPORT = """
import atexit, sys
heavy = sys.argv.pop().split(",")
atexit.register(lambda: print("LOADED", *sorted({*heavy} & {*sys.modules})))
"""
PACKAGES = {"litert": "ai_edge_litert", "onnx": "onnxruntime", "ctranslate2": "ctranslate2"}
EXPORTS = {"litert": export_litert, "onnx": export_onnx, "ctranslate2": export_ctranslate2}
# What needs no TensorFlow: a form, a pipeline, and the words of a command, or a program.
LIGHT = [
    *((form, "translator", how) for form in PACKAGES for how in ("translate", "open")),
    *((form, "embedder", how) for form in ("litert", "onnx") for how in ("predict", "open")),
    *((form, "embedder", how) for form in ("litert", "onnx") for how in ("index", "search")),
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A function that returns the path of an export of a form and a pipeline."""
    folder, made = tmp_path_factory.mktemp("start"), {}
    pipelines = {"translator": translator, "embedder": embedder}
    suffixes = {"litert": ".tflite", "onnx": ".onnx", "ctranslate2": ""}

    def path(form, name):
        pytest.importorskip(PACKAGES[form])
        if (form, name) not in made:
            made[form, name] = folder / f"{name}-{form}{suffixes[form]}"
            EXPORTS[form](pipelines[name](), made[form, name], LINES)
        return made[form, name]

    return path


def loaded(code, *arguments, given=""):
    """Runs code in a process of its own; returns its other lines and its heavy modules."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT + code, *map(str, arguments), ",".join(HEAVY)],
        input=given, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert last.startswith("LOADED")
    return lines, last.split()[1:]


@pytest.mark.parametrize(("form", "name", "how"), LIGHT)
def test_exports_answer_without_tensorflow(form, name, how, exported, tmp_path):
    path = exported(form, name)
    if how == "open":
        lines, modules = loaded(PROGRAM, path)
    elif how in ("index", "search"):
        (tmp_path / "texts.txt").write_text("\n".join(LINES))
        of_index = path, "--input", tmp_path / "texts.txt", "--output", tmp_path / "index"
        lines, modules = loaded(COMMAND, "index", *of_index)
        if how == "search":
            lines, modules = loaded(COMMAND, "search", tmp_path / "index", "a cat runs")
    else:
        lines, modules = loaded(COMMAND, how, path, given="a cat runs\n")
    assert modules == [] and lines


@pytest.mark.parametrize("arguments", [["--help"], ["predict", "--help"], ["settings"]])
def test_help_needs_no_tensorflow(arguments):
    lines, modules = loaded(COMMAND, *arguments)
    assert lines and not {*modules} & {"tensorflow", "keras", "tensorflow_text", "scipy"}


def test_a_run_imports_tensorflow_quietly(tmp_path):
    """The other side of the table: the check sees modules, and the log stays filtered."""
    run = write_run(embedder(), tmp_path / "run")
    lines, modules = loaded(COMMAND, "predict", run, given="a cat runs\n")
    assert {"tensorflow", "keras"} <= {*modules} and len(lines) == 1
