"""The table of docs/runtimes.md: complete, and true in every cell."""

import functools
import re

import pytest
import runtimes
from documents import read

from keras_transformer.export.formats import FORMATS
from keras_transformer.tasks import TASKS


@functools.cache
def table():
    """Returns the cells of the page, a dictionary from pairs of a row and a column."""
    text = runtimes.PAGE.read_text(encoding="utf-8")
    lines = text.split(runtimes.BEGIN)[1].split(runtimes.END)[0].splitlines()
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert header == ["task", *runtimes.RUNTIMES]
    return {
        (name, column): cell
        for name, *cells in rows
        for column, cell in zip(runtimes.RUNTIMES, cells, strict=True)
    }


def test_every_format_is_a_column():
    assert {format for format, _ in runtimes.RUNTIMES.values()} == set(FORMATS)
    assert {column for _, column in table()} == set(runtimes.RUNTIMES)


@pytest.mark.slow
def test_every_task_is_a_row():
    assert {make().task for make in runtimes.ROWS} == set(TASKS)
    assert [*dict.fromkeys(name for name, _ in table())] == [*map(runtimes.name_of, runtimes.ROWS)]


@pytest.mark.slow
def test_the_page_on_tflite_files_has_every_signature_of_one_pass():
    section = read("docs/litert_files.md").partition("## Models that answer in one pass")[2]
    rows = re.findall(r"^\| ([a-z ]+) \| `([a-z]+)_1(x16)?` \| (.*) \| (.*) \|$", section, re.M)
    tasks = set()
    for make in runtimes.ROWS:
        pipeline = make()
        if pipeline.generates or pipeline.task == "speech_recognition":
            continue
        codec, name = pipeline.codec, pipeline.task.replace("_", " ")
        ((_, verb, length, inputs, outputs),) = [row for row in rows if row[0] == name]
        assert (verb, bool(length)) == (codec.verb, codec.longest is not None), name
        for cell, stated in ((inputs, codec.input_specs()), (outputs, codec.nothing)):
            assert {*re.findall(r"`([a-z]+)`", cell)} == {*stated}, name
        tasks.add(name)
    assert tasks == {row[0] for row in rows} - {"task"}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("column", runtimes.RUNTIMES)
@pytest.mark.parametrize("make", runtimes.ROWS, ids=lambda make: make.__name__)
def test_a_cell_says_what_the_export_does(make, column, tmp_path):
    shown = table()[runtimes.name_of(make), column]
    found = runtimes.cell(make, column, tmp_path)
    assert found.partition(",")[0] == shown.partition(",")[0]
    if found != runtimes.REFUSED:  # of rounding, which depends on the processor
        limits = [max(float(cell.partition(", ")[2]), 1e-6) for cell in (found, shown)]
        assert limits[0] <= 30 * limits[1]
