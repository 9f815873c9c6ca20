"""Every task in every format: which export answers like the run, and which is refused.

    python tests/runtimes.py

Writes the table of docs/runtimes.md again. Each cell is an export of a small model with random
weights, opened again: "equal" with the largest difference of a score or of a number of the answers,
or "refused".
"""

import pathlib
import tempfile

import click
import keras
import marian_models
import numpy as np
import pipelines
from task_samples import GENERATORS, SAMPLES, student

import keras_transformer
from keras_transformer.export.formats import FORMATS

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "runtimes.md"
BEGIN, END = "<!-- table: python tests/runtimes.py -->\n", "<!-- end of the table -->\n"
# Columns: format, and options that differ from the defaults.
RUNTIMES = {
    "SavedModel": ("saved-model", {}),
    "`.tflite`": ("litert", {}),
    "`.tflite`, `--converter litert`": ("litert", {"converter": "litert"}),
    "`.tflite`, `--unrolled`": ("litert", {"unrolled": True}),
    "`.onnx`": ("onnx", {}),
    "CTranslate2": ("ctranslate2", {}),
    "Marian": ("marian", {}),
}
# Functions that return a pipeline, with its inputs.
ROWS = {**dict.fromkeys(GENERATORS, pipelines.LINES), **SAMPLES}
ROWS[student] = marian_models.sentences(9)
REFUSED = "refused"


def cell(make, column, folder):
    """Returns a cell of the table.

    Args:
        make: One of `ROWS`.
        column: One of `RUNTIMES`.
        folder: An empty folder.
    """
    name, changes = RUNTIMES[column]
    format, pipeline, samples = FORMATS[name], make(), ROWS[make]
    path = folder / f"x{format.suffix}"
    try:
        report = format.export(pipeline, path, samples, format.options(**changes))
    except ValueError as error:
        assert "\n" not in str(error) and not list(folder.iterdir()), error
        return REFUSED
    if column == "Marian":  # only Marian opens it
        assert report["agreement"] == 1.0
        return equal([report["score_difference"]])
    loaded = keras_transformer.open(path)
    if pipeline.generates:
        ours, theirs = (way.answer_batch(samples) for way in (pipeline, loaded))
        assert [answer.text for answer in ours] == [answer.text for answer in theirs]
        gaps = [abs(one.score - other.score) for one, other in zip(ours, theirs, strict=True)]
    else:
        ours, theirs = (way.answer(samples) for way in (pipeline, loaded))
        tolerance = pipeline.codec.tolerance
        assert all(one.agrees(two, tolerance) for one, two in zip(ours, theirs, strict=True))
        gaps = [one.gap(other) for one, other in zip(ours, theirs, strict=True)]
    return equal(gaps)


def equal(gaps):
    """Returns the cell of equal answers with these differences."""
    return f"equal, {np.max(gaps):.0e}".replace("0e+00", "0")


def name_of(make):
    """Returns the name of a row: that of the task, and of the model if a task has several."""
    pipeline = make()
    task = pipeline.task.replace("_", " ")
    others = [other for other in ROWS if other is not make and other().task == pipeline.task]
    return f"{task} (`{make.__name__}`)" if others else task


def main():
    """Writes the table."""
    lines = [["task", *RUNTIMES], ["---"] * (1 + len(RUNTIMES))]
    for make in ROWS:
        cells = []
        for column in RUNTIMES:
            with tempfile.TemporaryDirectory() as folder:
                cells.append(cell(make, column, pathlib.Path(folder)))
            keras.backend.clear_session()
        lines.append([name_of(make), *cells])
        click.echo(" | ".join(lines[-1]))
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{table}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
