"""Several runs on the command line form an ensemble, in every command that takes a run."""

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from marks import slow_except
from pipelines import LINES, classifier, recurrent_translator, tokenizer, translator, write_run

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.cli.main import cli
from keras_transformer.cli.opened import open_lines
from keras_transformer.pipelines import Run

DATA = """
[data]
source = "text"
train_source = "../lines"
train_target = "../lines"
validation_source = "../lines"
validation_target = "../lines"
test_source = "../lines"
test_target = "../{test}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "lines").write_text("".join(f"{line}\n" for line in LINES))
    (folder / "others").write_text("".join(f"{line}\n" for line in LINES[::-1]))
    write_run(translator(), folder / "one", DATA.format(test="lines"))
    write_run(recurrent_translator(), folder / "two", DATA.format(test="lines"))
    write_run(recurrent_translator(), folder / "other", DATA.format(test="others"))
    write_run(classifier(), folder / "labels")
    return folder


@pytest.fixture
def call(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def run(command, fails=False):
        data = "".join(f"{line}\n" for line in LINES)
        done = CliRunner().invoke(cli, command.split(), input=data)
        assert (done.exit_code != 0) == fails, done.output
        return done

    return run


def together():
    return Translator([translator().model, recurrent_translator().model], tokenizer())


@pytest.mark.long
@pytest.mark.slow
def test_an_ensemble_translates(call, folder):
    assert call("translate one two").stdout.splitlines() == together()(LINES)
    lines = call("translate one two --beam 3 --n-best 2").stdout.splitlines()
    expected = [
        [str(number), f"{result.score:.5f}", result.text]
        for number, row in enumerate(together().n_best(LINES, 2, Beam(3)), start=1)
        for result in row
    ]
    assert [line.split("\t") for line in lines] == expected


@pytest.mark.long
@pytest.mark.slow
def test_an_ensemble_scores(call):
    rows = call("score one two --source lines --target others").stdout.splitlines()
    expected = together().score(LINES, LINES[::-1])
    scores = [float(row.split("\t")[0]) for row in rows]
    np.testing.assert_allclose(scores, [score.score for score in expected], atol=2e-5)


@pytest.mark.long
@pytest.mark.slow
def test_an_evaluation_names_its_runs_and_does_not_change_them(call, folder):
    figures = json.loads(call("evaluate one two --greedy").stdout)
    assert figures["runs"] == ["one", "two"]
    again = json.loads(call("evaluate two one --source lines --reference lines").stdout)
    assert again["runs"] == ["two", "one"] and again["bleu"] == figures["bleu"]
    assert not any(Run(folder / name).metrics.exists() for name in ("one", "two"))


REFUSED = {
    "evaluate one other": "one and other have different data in the split test: name files",
    "evaluate one labels": "one and labels cannot form an ensemble: their tasks are translation",
    "translate one labels": "one and labels cannot form an ensemble: their tasks are translation",
    "score one labels --source lines --target lines": "labels/model.keras must hold a Transformer",
    "translate one lines": "lines is not a run: only runs form an ensemble.",
    "translate one nowhere": "nowhere does not exist",
    "export saved-model one new two": "unexpected extra argument (two)",
    "predict labels labels --beam 2": "--beam has no effect on labels and labels, a run for classi",
}


@pytest.mark.parametrize(
    "command",
    slow_except(
        REFUSED, "score one labels --source lines --target lines", "predict labels labels --beam 2"
    ),
)
def test_runs_that_do_not_fit_are_reported_in_one_line(call, command):
    done = call(command, fails=True)
    assert REFUSED[command] in done.stderr and done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.slow
def test_runs_with_different_searches_use_greedy_search(folder, tmp_path, capsys):
    shutil.copytree(folder / "two", tmp_path / "two")
    Run(tmp_path / "two").write_search(Beam(3))
    runs = [folder / "one", tmp_path / "two"]
    assert open_lines(runs, None).answering.search == Greedy()
    error = capsys.readouterr().err
    assert error.startswith(f"{runs[0]} and {runs[1]} are searched greedily, since their own")
    assert open_lines(runs, None, 5).answering.search == Beam(5)
    assert "are searched with beam 5, gnmt 0.6, since their own searches" in capsys.readouterr().err
    Run(tmp_path / "two").search.unlink()
    open_lines(runs, None)
    assert capsys.readouterr().err == ""
