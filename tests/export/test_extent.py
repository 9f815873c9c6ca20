"""The number of sentences that a check compares, its progress, and the texts in its report."""

import io
import types

import numpy as np
import pytest
import rich.console

from keras_transformer.cli.progress import shown_progress
from keras_transformer.export.extent import FEW, MANY, SECONDS, affordable, counted
from keras_transformer.export.parity import LONGEST, compare, shortened
from keras_transformer.export.saved_model.verify import _answers
from keras_transformer.tasks.results import Translation
from keras_transformer.tasks.strings import map_sorted


class Slow:
    """A model that takes some seconds per sentence, and much longer for the first call."""

    def __init__(self, seconds):
        self.seconds, self.now, self.calls = seconds, 0.0, []

    def translate_batch(self, sentences):
        self.now += self.seconds * len(sentences) if self.calls else 1000.0
        self.calls.append(len(sentences))

    def clock(self):
        return self.now


def count(sentences, seconds):
    model = Slow(seconds)
    return affordable(model, sentences, clock=model.clock), model.calls


def test_a_check_compares_as_many_sentences_as_time_allows():
    sentences = ["in 3 weeks"] * 200
    assert count(sentences, SECONDS / 201) == (200, [1, FEW])
    assert count(sentences, SECONDS / 150.5)[0] == 150
    assert count(sentences, 0.0)[0] == 200


@pytest.mark.parametrize("seconds", [SECONDS / FEW, 1.0, 1e6])
def test_some_sentences_are_always_compared(seconds):
    assert count(["in 3 weeks"] * 200, seconds)[0] == FEW
    assert count(["in 3 weeks"] * MANY, seconds) == (MANY, []), "few enough: no clock is looked at"
    late = [" "] * 100 + ["in 3 weeks"] * 100
    assert count(late, seconds)[0] == 101, "one of them has to be a sentence"


def test_every_batch_is_counted():
    stages = []
    double = counted(lambda batch: [2 * item for item in batch], stages.append, "doubling", 5)
    assert map_sorted(double, [3, 1, 2, 5, 4], 2, key=int) == [6, 2, 4, 10, 8]
    assert stages == [f"doubling: {done} of 5 texts" for done in (2, 4, 5)]


def test_a_signature_is_shown_before_its_first_call():
    """Which optimises the graph: for 30 layers that takes minutes."""
    shown = []

    class Endpoint:
        name = "tokens"
        pipeline = types.SimpleNamespace(target_tokenizer=None)

        def example(self, sentences):
            return {"sentences": sentences}

    def call(sentences):
        shown.append("called")
        return {"text": np.array(sentences), "score": np.zeros(len(sentences))}

    rows = _answers(Endpoint(), call, [b"a", b"b"], shown.append, "here")
    assert [row[0].text for row in rows] == ["a", "b"]
    assert shown == ["calling tokens here", "called", "calling tokens here: 2 of 2 texts"]


def test_in_a_file_progress_is_a_line_every_few_seconds():
    times, text = iter([0.0, 0.0, 1.0, 4.9, 5.1, 6.0, 7.0, 12.1]), io.StringIO()
    with shown_progress(rich.console.Console(file=text), lambda: next(times)) as progress:
        progress("calling tokens")
        for done in range(4):
            progress(f"calling tokens: {done} of 9 texts")
        progress("writing 3 of 3 files")
        progress("writing: 1 of 3 files")
    assert text.getvalue().splitlines() == [
        "calling tokens ...",
        "calling tokens: 2 of 9 texts ...",
        "writing 3 of 3 files ...",
        "writing: 1 of 3 files ...",
    ]


def test_long_texts_are_shortened():
    runaway = "und " * 256
    assert shortened(runaway) == f"{runaway[: LONGEST - 30].rstrip()} ... (1024 characters)"
    assert len(shortened("x" * 10**6)) <= LONGEST and shortened("x" * LONGEST) == "x" * LONGEST


def test_differences_in_a_report_are_short():
    from pipelines import tokenizer

    ours, theirs = ([Translation(text * 256, -1.0, False)] for text in ("a cat ", "a dog "))
    parity = compare(["the cat " * 99], ours, theirs, tokenizer())
    assert parity["identical"] == 0 and 0 < parity["token_agreement"] < 1
    (difference,) = parity["differences"]
    assert all(len(text) <= LONGEST for text in difference.values())
    assert difference["found"].startswith("a dog a dog") and "(1536 char" in difference["found"]
