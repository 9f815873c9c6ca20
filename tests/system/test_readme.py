"""The README's results, pictures and program."""

import contextlib
import importlib.util
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib

import click
import keras
import numpy as np
import pytest
import tensorflow as tf
from documents import ROOT, blocks, read, run

from keras_transformer.cli.main import cli
from keras_transformer.export.formats import FORMATS

RESULTS = json.loads(read("benchmarks/results.json"))
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
ANIMATION = ROOT / "docs" / "images" / "demo.webp"


def table(heading):
    """Returns the rows below the header that begins with `heading`, as lists of cells."""
    lines = read("README.md").split("\n")
    (first,) = [n for n, line in enumerate(lines) if line.startswith(f"| {heading} |")]
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split("|")])


@pytest.mark.parametrize("heading", RESULTS)
def test_a_table_has_the_results(heading):
    assert table(heading) == RESULTS[heading]


def test_the_results_equal_those_on_the_benchmarks_page():
    """A value that is measured again must be replaced in both."""
    there = set(NUMBER.findall(read("docs/benchmarks.md")))
    section = read("README.md").partition("\n## Results\n")[2].partition("\n## ")[0]
    prose = "\n".join(line for line in section.split("\n") if not line.startswith("|"))
    cells = [cell for rows in RESULTS.values() for row in rows for cell in row[1:]]
    numbers = {number for text in (*cells, prose) for number in NUMBER.findall(text)}
    assert len(numbers) > 30
    assert numbers <= there, f"not on docs/benchmarks.md: {sorted(numbers - there)}"


def test_the_command_for_phones_is_that_of_the_page_on_android():
    first, *_ = [block for block in blocks("docs/android.md") if block.language == "sh"]
    command = first.code.splitlines()[0]
    assert f"\n{command}\n" in read("README.md")
    assert f"\n{command}\n" in read("examples/ios/README.md")


def test_the_score_is_that_of_the_page_which_tests_it():
    (block,) = [block for block in blocks("README.md", "python") if block.needs == "score"]
    assert any(block.code in there.code for there in blocks("docs/own_layers.md", "python"))


@pytest.mark.slow
def test_a_run_trains_and_is_exported_with_the_score(tmp_path):
    (block,) = [block for block in blocks("README.md", "python") if block.needs == "score"]
    (tmp_path / "my_scores.py").write_text(block.code)
    program = [sys.executable, "-m", "keras_transformer"]
    for command in (
        "train demo --output run --set model.score=cosine --set training.seed=1 "
        "--set training.updates=2 --set schedule.warmup_steps=1 --set data.examples=3000 "
        "--set vocabulary.size=200",
        "export litert run m.tflite --greedy --lengths 32 --max-length 32",
    ):
        words = [*program, *shlex.split(command), "--module", "my_scores"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
    assert "outputs identical to the run's" in done.stderr + done.stdout


def test_every_readme_of_an_example_is_linked():
    page = read("examples/README.md")
    for path in (ROOT / "examples").glob("*/README.md"):
        assert f"]({path.parent.name}/README.md)" in page, path
    assert "](examples/README.md)" in read("README.md")


def test_the_extra_all_has_every_extra_but_those_that_the_page_names():
    extras = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    page = read("docs/install.md")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page.partition("## Extras")[2], re.MULTILINE)
    (excepted,) = [text for name, text in rows if name == "all"]
    assert {name for name, _ in rows} == {*extras} - {"docs"}
    (together,) = extras["all"]
    contained = {*re.search(r"\[(.*)\]", together)[1].split(",")}
    above = {name for name, _ in rows[: [name for name, _ in rows].index("all")]}
    assert above - contained == {*re.findall(r"`(\w+)`", excepted)}


def program(name, monkeypatch):
    """Returns a program of the folder .ci as a module."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_the_figure_of_files_is_drawn_by_its_program(monkeypatch):
    figure = program("contents_figure", monkeypatch)
    assert figure.draw() == figure.FIGURE.read_text("utf-8")
    assert 'src="docs/images/contents.svg"' in read("README.md")


def test_the_figure_has_every_format_and_the_option_for_strings(monkeypatch):
    """A format with an option `--tokenizer` has a row for it, in which the graph does it all."""
    figure = program("contents_figure", monkeypatch)
    export = cli.commands["export"].commands
    plain = {row.format for row in figure.OURS if row.option is None}
    assert plain == {*export} == {*FORMATS}
    options = {
        name: {option for parameter in export[name].params for option in parameter.opts}
        for name in export
    }
    with_strings = {row.format: row.cells for row in figure.OURS if row.option == "--tokenizer"}
    assert {*with_strings} == {name for name in export if "--tokenizer" in options[name]}
    assert {kind for cells in with_strings.values() for kind, _ in cells} == {"graph"}
    assert all(len(row.cells) == len(figure.STEPS) for row in (*figure.OURS, *figure.OTHERS))


def test_the_moving_picture_is_small_and_short():
    image = pytest.importorskip("PIL.Image").open(ANIMATION)
    seconds = 0.0
    for number in range(image.n_frames):
        image.seek(number)
        image.load()  # only then is its duration known
        seconds += image.info["duration"] / 1000
    assert ANIMATION.stat().st_size < 500_000
    assert 12 < seconds < 20 and image.info["loop"] == 0
    assert 'src="docs/images/demo.webp"' in read("README.md")


def test_the_recorded_commands_exist(monkeypatch):
    pytest.importorskip("PIL")
    for command in program("recording", monkeypatch).COMMANDS:
        _, *words = shlex.split(command.rpartition("| ")[2])
        chosen = cli
        while isinstance(chosen, click.Group):
            chosen, words = chosen.commands[words[0]], words[1:]
        _, rest, _ = chosen.make_parser(click.Context(chosen)).parse_args(words)
        assert not rest, command


@pytest.mark.slow
def test_the_program_learns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = [block for block in blocks("README.md", "python") if not block.needs]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        names = run([block])
    (stated,) = re.findall(r"accuracy above (0\.\d+)", read("README.md"))
    assert float(printed.getvalue()) > float(stated)
    from ai_edge_litert.interpreter import Interpreter

    texts, model = names["texts"][-3:], names["model"]
    expected = model(texts)
    loaded = keras.saving.load_model("month.keras")
    saved = tf.saved_model.load("month")
    interpreter = Interpreter("month.tflite")
    interpreter.resize_tensor_input(0, texts.shape)
    call = interpreter.get_signature_runner()
    (lite,) = call(**{name: texts.astype("int32") for name in call.get_input_details()}).values()
    for found in (loaded(texts), saved.serve(tf.constant(texts, "int32")), lite):
        np.testing.assert_allclose(found, expected, atol=1e-5)
