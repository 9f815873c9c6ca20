"""A format of another package: its command, made of its declaration, and its options."""

import dataclasses
import json
import os
import pathlib

import pytest
from click.testing import CliRunner
from pipelines import translator, write_run

from keras_transformer import Beam
from keras_transformer.cli.main import cli
from keras_transformer.export import ExportError
from keras_transformer.export.formats import FORMATS, Beams, Format
from keras_transformer.export.options import GENERATION, QuantizedOptions, search, stored_as
from keras_transformer.search_settings import setting

SHELVES = "Shelves"


@dataclasses.dataclass(frozen=True)
class PaperOptions(QuantizedOptions):
    """Options of an export to paper.

    Args:
        quantize: Storage of the weights.
        min_agreement, max_loss, max_score_loss: See `QuantizedOptions`.
        search: The search.
        folded: Whether the sheets are folded.
        sheets: Number of sheets.
        rows: Numbers of rows.
        ink: Colour of the ink.
    """

    quantize: str = stored_as("int8")
    search: object = search()
    folded: bool = setting(False, "Fold the sheets.", kind=bool, group=SHELVES)
    sheets: int = setting(
        3, "Number of sheets.", least=1, most=9, group=SHELVES, metavar="N", requires="folded"
    )
    rows: tuple = setting((1,), "Rows.", kind=tuple, metavar="N,N,...", group=SHELVES)
    ink: str | None = setting(
        None, "Ink.", kind=str, choices=("blue", "red"), is_optional=True, group=SHELVES,
        excludes="folded", needs=GENERATION,
    )  # fmt: skip


def write(pipeline, path, samples, options=None, *, references=None, origin=None, progress=None):
    """An exporter that writes its options."""
    options = FORMATS["paper"].check(pipeline, options, references=references)
    FORMATS["paper"].beams.check(options.search)
    pathlib.Path(path).write_text(json.dumps([samples, options.given()], default=str))
    return {"path": str(path), "agreement": 1.0, "bytes": 0}


def refuse(config, tokenizers, options, origin):
    if options.rows == (5,):
        raise ExportError("Five rows do not fit.")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(translator(), tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def paper(run, monkeypatch, tmp_path):
    """Runs `export paper` with options and returns its result and what it has written."""
    format = Format(
        "paper", "Write on paper.", "keras-transformer export paper runs/base x.paper",
        PaperOptions, write, os.fspath, object, suffix=".paper", of_searches=("references",),
        of_pipeline=("max_length",), refusal=refuse,
        beams=Beams("a sheet", {"stopping": ("count",)}),
    )  # fmt: skip
    monkeypatch.setitem(FORMATS, "paper", format)
    lines, path = tmp_path / "lines", tmp_path / "x.paper"
    lines.write_text("in 3 weeks\n")

    def call(*options, to=path):
        words = ["export", "paper", str(run), str(to), "--sentences", str(lines), *options]
        words.append("--json")
        done = CliRunner().invoke(cli, words)
        return done, json.loads(path.read_text()) if path.exists() else None

    return call


def test_its_command_has_the_options_of_its_value(paper):
    done, (samples, options) = paper("--beam", "2", "--folded", "--sheets", "9", "--rows", "1,4")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["agreement"] == 1.0
    assert samples == ["in 3 weeks"]
    beam = str(Beam(2))
    assert options == {"search": beam, "folded": True, "sheets": 9, "rows": [1, 4]}
    listing, page = (
        CliRunner().invoke(cli, ["export", *words]).output for words in (["--help"], _HELP)
    )
    assert "paper        Write on paper." in listing and "litert" in listing
    for text in (
        "RUN FILE",
        "Shelves:",
        "--folded",
        "[default: 3; from 1 to 9]",
        "--ink [blue|red]",
    ):
        assert text in page, text
    for text in ("--quantize [none|int8]", "--max-loss POINTS", "--beam N", "--max-length TOKENS"):
        assert text in page, text
    for option in ("--stopping", "--shortlist", "--calibration", "--jit"):
        assert option not in page, option


_HELP = ["paper", "--help"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sheets", "4"], "--sheets needs --folded."),
        (["--folded", "--ink", "red"], "--ink has no effect with --folded."),
        (["--ink", "green"], "Invalid value for '--ink': 'green' is not one of 'blue', 'red'."),
        (["--folded", "--sheets", "10"], "Invalid value for '--sheets': must be from 1 to 9. Rec"),
        (["--rows", "4,1"], "Invalid value for '--rows': '4,1' must be positive and increasing"),
        (["--rows", "5"], "Five rows do not fit."),
        (["--max-score-loss", "1"], "--max-score-loss needs --quantize."),
        (["--tokenizer"], "No such option '--tokenizer'"),
    ],
)
def test_an_error_is_one_line(paper, options, message):
    done, written = paper(*options)
    assert done.exit_code and written is None
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ") and message in line


def test_a_path_has_the_suffix_of_the_format(paper, tmp_path):
    done, _ = paper(to=tmp_path / "x.tflite")
    assert "x.tflite must end in .paper" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sheets": 4}, r"`sheets` needs `folded`. Received: sheets=4\."),
        ({"folded": True, "ink": "red"}, "`ink` has no effect with `folded`. Received: ink='red'."),
        ({"max_loss": 2}, r"`max_loss` needs `quantize`. Received: max_loss=2\."),
        ({"rows": 3}, r"`rows` must be a list or tuple of integers. Received: rows=3\."),
    ],
)
def test_an_option_without_effect_cannot_be_written(options, message):
    with pytest.raises(ValueError, match=message):
        PaperOptions(**options)


def test_a_list_becomes_a_tuple_so_that_values_are_equal():
    assert PaperOptions(rows=[1, 4]) == PaperOptions(rows=(1, 4))
    assert {PaperOptions(), PaperOptions(rows=[1])} == {PaperOptions()}
