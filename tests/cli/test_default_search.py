"""The default search of a run: stored in the run and replaced as a whole by search options."""

import dataclasses
import json

import pytest
from click.testing import CliRunner
from pipelines import LINES, translator

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.cli.main import cli
from keras_transformer.cli.opened import open_lines
from keras_transformer.decoding import Shortlist
from keras_transformer.export import formats
from keras_transformer.export.runtime import changed
from keras_transformer.export.saved_model import runtime
from keras_transformer.export.saved_model.metadata import write_beam
from keras_transformer.pipelines import Run
from keras_transformer.tasks.results import Translation
from keras_transformer.text.quality import score

SEARCH = Beam(3, 1.2, normalization="power", stopping="score", extra_length=None, max_length=9)
SAYS = "is searched by default with beam 3, power 1.2, stopped by score."
CONFIG = """
[data]
source = "text"
train_source = "{lines}"
train_target = "{lines}"
validation_source = "{lines}"
validation_target = "{lines}"
test_source = "{lines}"
test_target = "{lines}"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with an untrained model and a search of its own."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "lines").write_text("".join(f"{line}\n" for line in LINES))
    run = Run(folder / "run")
    run.path.mkdir()
    run.config.write_text(CONFIG.format(lines=folder / "lines"))
    run.write_tokenizers(translator().tokenizers)
    run.write_search(SEARCH)
    translator().model.save(run.model)
    return run


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    """A shortlist with few candidates."""
    file = tmp_path_factory.mktemp("lists") / "lex.bin"
    Shortlist.from_counts([[7, 12, 3], [8, 15, 5], [9, 20, 1]], 30, first=6).write(file)
    return file


def call(*arguments, status=0):
    data = "".join(f"{line}\n" for line in LINES)
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=data)
    assert done.exit_code == status, done.output
    return done


def test_a_run_stores_its_search(run, tmp_path):
    assert json.loads(run.search.read_text())["stopping"] == "score"
    for search in (SEARCH, Greedy()):
        other = Run(tmp_path)
        other.write_search(search)
        assert other.read_search() == search
    assert Run(tmp_path / "none").read_search() is None
    assert Translator.from_run(run.path).search == SEARCH


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Expecting property name"),
        (
            '{"search": "best"}',
            "`search` must be one of greedy, beam, ctc, sample. Received: 'best'",
        ),
        ('{"search": "beam", "width": 3}', "no beam has these fields: .*width"),
        ('{"search": "beam", "size": 0}', "`size` must be at least 1"),
        ("[]", "`search` must be one of greedy, beam, ctc, sample. Received: None"),
    ],
)
def test_a_damaged_search_is_reported(tmp_path, content, message):
    Run(tmp_path).search.write_text(content)
    with pytest.raises(ValueError, match=rf"search\.json is damaged \(.*{message}"):
        Run(tmp_path).read_search()


def test_the_search_of_the_run_is_used_if_no_option_names_one(run, capsys):
    opened = open_lines([run.path], None)
    assert opened.answering.search == SEARCH and opened.n is None
    assert SAYS in capsys.readouterr().err
    several = open_lines([run.path], None, 5)
    assert several.answering.search == dataclasses.replace(SEARCH, size=5) and several.n == 5
    assert SAYS.replace("beam 3", "beam 5") in capsys.readouterr().err
    # Greedy search keeps the maximum length of the run's own search.
    for search, expected in (
        (Greedy(), Greedy(9)), (Greedy(3), Greedy(3)), (Beam(2), Beam(2)),
    ):  # fmt: skip
        assert open_lines([run.path], search).answering.search == expected
    assert capsys.readouterr().err == ""


def test_alignments_switch_to_greedy_search_with_a_message(run, capsys):
    open_lines([run.path], None, alignments=True)
    assert "--alignments uses greedy search in place of the run's own" in capsys.readouterr().err


@pytest.mark.slow
def test_the_search_of_the_run_is_printed(run):
    done = call("translate", run.path)
    assert SAYS in done.stderr
    assert done.stdout.splitlines() == translator()(LINES, SEARCH) != translator()(LINES)
    done = call("translate", run.path, "--greedy")
    expected = translator()(LINES, Greedy(SEARCH.max_length))
    assert done.stdout.splitlines() == expected and "searched" not in done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_another_search_replaces_it_as_a_whole(run):
    done = call("translate", run.path, "--beam", 2)
    assert done.stdout.splitlines() == translator()(LINES, Beam(2))
    lines = call("translate", run.path, "--n-best", 4).stdout.splitlines()
    wide = Beam(4, 1.2, normalization="power", stopping="score", extra_length=None, max_length=9)
    expected = translator().n_best(LINES, 4, wide)
    assert [line.split("\t")[2] for line in lines] == [
        best.text for row in expected for best in row
    ]


@pytest.mark.slow
def test_evaluate_uses_it_also_with_a_shortlist(run, lists):
    lines = run.path.parent / "lines"
    files = "--source", lines, "--reference", lines
    results = json.loads(call("evaluate", run.path, *files).stdout)
    assert results["search"] == str(SEARCH)
    few = translator().with_shortlist(Shortlist.read(lists))
    results = json.loads(
        call("evaluate", run.path, *files, "--greedy", "--shortlist", lists).stdout
    )
    greedy = Greedy(SEARCH.max_length)
    expected = score(few(LINES, greedy), LINES)
    assert expected["chrf"] != score(translator()(LINES, greedy), LINES)["chrf"]
    assert results["chrf"] == pytest.approx(expected["chrf"])
    assert results["search"] == "greedy, shortlist 6 + 50"


def test_greedy_and_other_searches_exclude_each_other(run):
    for options in (["--beam", 2], ["--sample"], ["--n-best", 2], ["--length-penalty", 1]):
        done = call("translate", run.path, "--greedy", *options, status=2)
        assert f"{options[0]} has no effect with --greedy." in done.stderr


def test_a_shortlist_of_another_vocabulary_is_refused_by_evaluate(run, tmp_path):
    Shortlist(1, 1, [0, 1], [0]).write(tmp_path / "lex.bin")
    done = call("evaluate", run.path, "--shortlist", tmp_path / "lex.bin", status=1)
    assert "lex.bin: `shortlist` must fit the model's vocabularies" in done.stderr


def test_copies_of_a_translator_keep_the_search(run):
    ours = Translator.from_run(run.path)
    assert ours.with_model(ours.model).search == ours.with_shortlist(None).search == SEARCH
    assert ours.search_for(2) == SEARCH and ours.search_for(5).size == 5
    assert translator().search == Greedy() and translator().search_for(1) == Beam(4)
    with pytest.raises(TypeError, match="`search` must be a `Greedy` or a `Beam`"):
        Translator(ours.model, ours.tokenizers, search="beam")


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A function that exports a `Beam` as a SavedModel and returns the exported search."""

    class Fake(runtime.SavedModelTranslator):
        max_outputs = 2
        takes_words = scores_tokens = False

        def __init__(self, path):
            self.path, self.search = runtime.newest_version(path), None

        def with_search(self, search):
            return changed(self, search=search)

        def answer_batch(self, texts):
            return [Translation(repr(self.search), 0.0, False) for _ in texts]

    def write(beam):
        (tmp_path / "1/assets.extra").mkdir(parents=True)
        (tmp_path / "1/saved_model.pb").touch()
        if beam is not None:
            write_beam(tmp_path / "1", beam)
        return tmp_path

    monkeypatch.setattr(runtime, "SavedModelTranslator", Fake)
    return write


@pytest.mark.parametrize(
    ("beam", "words", "expected"),
    [
        (SEARCH, [], dataclasses.replace(SEARCH, size=2)),
        (SEARCH, ["--length-penalty", 2], dataclasses.replace(SEARCH, size=2, length_penalty=2.0)),
        (None, [], Beam(2)),
    ],
)
def test_a_saved_model_keeps_its_beam_except_for_given_options(saved, beam, words, expected):
    done = call("translate", saved(beam), "--beam", 2, *words)
    assert set(done.stdout.splitlines()) == {repr(expected)}


def test_a_penalty_without_effect_on_a_saved_model_is_refused(saved):
    path = saved(Beam(3, normalization="average"))
    done = call("translate", path, "--beam", 2, "--length-penalty", 1, status=2)
    assert f"--length-penalty has no effect on {path}" in done.stderr


@pytest.mark.parametrize("form", ["ctranslate2", "marian"])
def test_an_export_that_cannot_store_the_search_is_refused(run, tmp_path, monkeypatch, form):
    def write(pipeline, path, samples, options, **data):
        return {"agreement": 1.0, "bytes": 1}

    # Marian has no model like this one.
    wanted = formats.FORMATS[form]
    format = dataclasses.replace(wanted, exporter=write, refusal=lambda *run: None)
    monkeypatch.setitem(formats.FORMATS, form, format)
    done = call("export", form, run.path, tmp_path / "x", "--sentences", run.path.parent / "lines")
    assert f"cannot store the run's own search, {SEARCH}; it uses greedy search." in done.stderr
