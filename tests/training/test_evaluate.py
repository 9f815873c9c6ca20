"""Scores are sacreBLEU's own, for files and for the splits of a run's data."""

import json

import numpy as np
import pytest
import sacrebleu

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.results import Translation
from keras_transformer.text.quality import score
from keras_transformer.training import evaluate as module
from keras_transformer.training.evaluate import evaluate_files, evaluate_split

REFERENCES = ["Der Hund läuft über die Wiese.", "In 17 Wochen, am Montag.", "Zwei Äpfel, 1,5 kg."]
HYPOTHESES = ["Der Hund lief über die Wiese.", "In 17 Wochen, am Montag.", "zwei äpfel, 1,5 kg."]


def test_scores_and_signatures_are_sacrebleus():
    results = score(HYPOTHESES, REFERENCES)
    assert results["bleu"] == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert results["chrf"] == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert results["exact_match"] == pytest.approx(100 / 3)
    assert results["sentences"] == 3
    version = sacrebleu.__version__
    expected = f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert results["bleu_signature"] == expected
    assert results["chrf_signature"].startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|")


def test_options_are_applied_and_named_in_the_signature():
    plain = score(HYPOTHESES, REFERENCES)
    results = score(HYPOTHESES, REFERENCES, lowercase=True, tokenize="none")
    assert "case:lc|eff:no|tok:none" in results["bleu_signature"]
    assert "case:lc" in results["chrf_signature"]
    assert results["bleu"] > plain["bleu"]
    assert results["exact_match"] == plain["exact_match"]


def test_evaluate_translates():
    results = TASKS["translation"].evaluate(
        lambda sentences: [text.upper() for text in sentences], [["a b"], ["A B"]]
    )
    assert results["exact_match"] == 100
    assert results["seconds"] >= 0 and not {"search", "incomplete"} & {*results}


def test_lists_that_cannot_be_scored_are_refused():
    with pytest.raises(ValueError, match="one sentence for each .* 2 hypotheses, 3 references"):
        score(HYPOTHESES[:2], REFERENCES)
    with pytest.raises(ValueError, match="`references` must hold at least one sentence"):
        score([], [])


@pytest.fixture
def echo(monkeypatch):
    """A fake translator that returns its input, in place of the run's."""

    monkeypatch.setattr(module, "open_run", lambda run: lambda sentences, search=None: sentences)


def test_files_are_compared_line_by_line(tmp_path, run, echo):
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_bytes("ä\n\nb\r\nc\u2028d\n".encode())
    reference.write_bytes("ä\n\nb\nc".encode())  # the last line break may be missing
    results = evaluate_files(run, source, reference)
    assert (results["sentences"], results["exact_match"]) == (4, 75)


def test_files_that_cannot_be_compared_are_reported_in_one_line(tmp_path, run, echo):
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("a\nb\n")
    reference.write_text("a\n")
    with pytest.raises(ValueError, match="source has 2 lines, .*reference has 1: line n of one"):
        evaluate_files(run, source, reference)
    reference.write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match="reference, line 2: not UTF-8."):
        evaluate_files(run, source, reference)


def test_a_beam_is_used_and_reported(tmp_path, run, monkeypatch):
    def named(sentences, search):
        return [f"{search.size} {search.length_penalty}" for _ in sentences]

    monkeypatch.setattr(module, "open_run", lambda run: named)
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("a\nb\n")
    reference.write_text("5 0.6\n5 1.5\n")
    results = evaluate_files(run, source, reference, search=Beam(5))
    assert (results["search"], results["exact_match"]) == ("beam 5, gnmt 0.6", 50)
    results = evaluate_files(run, source, reference, search=Beam(5, length_penalty=1.5))
    assert (results["search"], results["exact_match"]) == ("beam 5, gnmt 1.5", 50)
    assert evaluate_split(run, search=Beam(2))["search"] == "beam 2, gnmt 0.6"
    assert json.loads((run / "metrics.json").read_text())["search"] == "beam 2, gnmt 0.6"


@pytest.fixture
def run(tmp_path):
    """The folder of a run on text files with a test split; its model is never read."""
    for name, text in (("a", "x\ny\n"), ("b", "x\nz\n")):
        (tmp_path / name).write_text(text)
    sides = {"source": "a", "target": "b"}
    lines = [
        f'{split}_{side} = "../{sides[side]}"'
        for split in ("train", "validation", "test")
        for side in sides
    ]
    (tmp_path / "run").mkdir()
    config = "\n".join(["[data]", 'source = "text"', *lines])
    (tmp_path / "run" / "config.toml").write_text(config)
    for name in ("model.keras", "tokenizer.model"):
        (tmp_path / "run" / name).touch()
    return tmp_path / "run"


def test_metrics_of_the_test_split_are_stored_in_the_run(run, echo):
    (run / "metrics.json").write_text('{"updates": 7}')
    results = evaluate_split(run, search=Greedy())
    assert (results["sentences"], results["exact_match"]) == (2, 50)
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["updates"] == 7
    assert metrics["search"] == "greedy"
    assert {name: metrics[name] for name in ("bleu", "chrf", "exact_match")} == {
        name: results[name] for name in ("bleu", "chrf", "exact_match")
    }


def test_metrics_of_other_splits_are_not_stored(run, echo):
    assert evaluate_split(run, "validation")["sentences"] == 2
    assert not (run / "metrics.json").exists()
    with pytest.raises(ValueError, match="`split` must be one of train, validation, test"):
        evaluate_split(run, "dev")


def test_a_later_evaluation_reports_its_own_search(run, monkeypatch):
    """Also without a search: stored metrics never keep the name of an earlier search.

    Outputs that were cut are counted and reported.
    """

    class Echo(Translator):
        def __init__(self):
            pass

        def n_best(self, sentences, n, search):
            return [[Translation(text, 0.0, False, complete=text != "y")] for text in sentences]

    monkeypatch.setattr(module, "open_run", lambda run: Echo())
    numbers = []
    results = evaluate_split(run, search=Greedy(), report_incomplete=numbers.append)
    assert (results["incomplete"], numbers) == (1, [2])
    assert json.loads((run / "metrics.json").read_text())["incomplete"] == 1
    for search, name in ((Beam(2), "beam 2, gnmt 0.6"), (None, "greedy")):
        assert evaluate_split(run, search=search)["search"] == name
        assert json.loads((run / "metrics.json").read_text())["search"] == name


def test_a_task_of_two_columns_is_evaluated_on_two_files(run, tmp_path, echo):
    (tmp_path / "source").write_text("a\n")
    message = (
        f"{run} is a run for translation, whose data have source and target: evaluation needs "
        "two files."
    )
    with pytest.raises(ValueError, match=message):
        evaluate_files(run, tmp_path / "source")


def test_columns_of_several_runs_are_equal_even_with_unknown_targets():
    inputs = [np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)]
    target = [np.float32("nan"), np.float32(2)]
    columns, copy = [inputs, target], [list(map(np.copy, inputs)), list(map(np.copy, target))]
    assert module._equal(columns, copy)
    assert not module._equal(columns, [inputs, target[::-1]])
    assert not module._equal(columns, [inputs, target[:1]])
    assert module._equal([["a", "b"]], [["a", "b"]])
    assert not module._equal([["a", "b"]], [["b", "a"]])
