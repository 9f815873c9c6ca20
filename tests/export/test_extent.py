"""The number of sentences that a check compares, its progress, and the texts in its report."""

import dataclasses
import io
import types

import numpy as np
import pytest
import rich.console

from keras_transformer import Beam, Greedy
from keras_transformer.cli.progress import shown_progress
from keras_transformer.export.extent import (
    FEW,
    MANY,
    SECONDS,
    TOKENS,
    CheckTime,
    affordable,
    counted,
    limited,
)
from keras_transformer.export.parity import LONGEST, compare, shortened
from keras_transformer.export.saved_model.verify import FIRST, _answers, _exported, _in_memory
from keras_transformer.export.saved_model.warmup import Request
from keras_transformer.tasks.results import Translation
from keras_transformer.tasks.strings import map_sorted


class Slow:
    """A model that takes some seconds per sentence, and much longer for the first call."""

    def __init__(self, seconds):
        self.seconds, self.now, self.calls = seconds, 0.0, []

    def answer_batch(self, sentences):
        self.now += self.seconds * len(sentences) if self.calls else 1000.0
        self.calls.append(len(sentences))

    def clock(self):
        return self.now


class Echo:
    """An endpoint that answers each sentence with itself, in `seconds` of `clock`."""

    pipeline = types.SimpleNamespace(target_tokenizer=None)

    def __init__(self, name, clock, seconds=0.0):
        self.name, self.clock, self.seconds = name, clock, seconds

    def example(self, sentences):
        return {"sentences": sentences}

    def answer(self, sentences):
        self.clock.now += self.seconds * len(sentences)
        texts, count = np.array(sentences, object), len(sentences)
        return {"text": texts, "score": np.zeros(count), "complete": np.ones(count, bool)}


class Loaded:
    """An export of endpoints, which notes what is called."""

    def __init__(self, *endpoints):
        self.answers, self.calls = {kind.name: kind.answer for kind in endpoints}, []

    def run(self, name, **inputs):
        self.calls.append(name)
        return self.answers[name](**inputs)


@pytest.mark.parametrize("own, most", [(None, TOKENS), (40, 40), (5000, TOKENS)])
@pytest.mark.parametrize("search", [Greedy(), Beam(4, normalization="average", extra_length=None)])
def test_a_check_of_a_language_model_ends_early(search, own, most):
    """Whose outputs could otherwise fill thousands of positions."""
    search = dataclasses.replace(search, max_length=own)
    model = types.SimpleNamespace(has_source=False, max_length=8192)
    assert limited(model, search) == dataclasses.replace(search, max_length=most)
    model.max_length = 30
    assert limited(model, search).max_length == 30
    translator = types.SimpleNamespace(has_source=True, max_length=8192)
    assert limited(translator, search) == search


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


@pytest.mark.parametrize("seconds, compared", [(0.0, 100), (0.1, 100), (1.0, 11), (60.0, 2)])
def test_as_many_sentences_are_compared_as_fit_into_the_time(seconds, compared):
    clock = Slow(0)
    sentences = [str(number).encode() for number in range(100)]
    endpoints = [Echo("serving_default", clock, seconds), Echo("n_best", clock)]
    time = CheckTime(100.0, clock.clock)
    kept, answers = _in_memory(endpoints, sentences, lambda stage: None, time)
    assert FIRST == 0.1 and kept == sentences[:compared]
    for rows in answers.values():
        assert [row[0].text.encode() for row in rows] == kept
    assert (time.left_out, [*answers]) == (
        ([], ["serving_default", "n_best"]) if seconds < 60 else (["n_best"], ["serving_default"])
    )


def test_a_sentence_is_compared_even_if_the_first_ones_are_empty():
    clock = Slow(0)
    time = CheckTime(1.0, clock.clock)
    endpoints = [Echo("serving_default", clock, 9.0)]
    kept, _ = _in_memory(endpoints, [b" ", b"", b"a", b"b", b"c"], lambda stage: None, time)
    assert kept == [b" ", b"", b"a", b"b"]


def test_what_there_is_no_time_for_is_left_out_and_named():
    clock = Slow(0)
    endpoints = [Echo(name, clock, 3.0) for name in ("serving_default", "n_best", "search")]
    requests = [Request(kind.name, kind.example([b"a"])) for kind in endpoints]

    def called(seconds, is_first=True):
        model, time = Loaded(*endpoints), CheckTime(seconds, clock.clock)
        options = [b"a"], requests, lambda stage: None, "here", time, is_first
        answers = _exported(model, endpoints, *options)
        return model.calls, [*answers], time.left_out

    names = [kind.name for kind in endpoints]
    warm_up = [f"a warm-up request for {name}" for name in names]
    assert called(100.0) == (names * 2, names, [])
    assert called(10.0) == ([*names, *names[:1]], names, warm_up[1:])
    assert called(4.0) == (names[:2], names[:2], ["search here", *warm_up])
    assert called(-1.0)[0] == names[:1], "the first call takes place in any case"
    assert called(-1.0, is_first=False)[0] == []


def test_every_batch_is_counted():
    stages = []
    double = counted(lambda batch: [2 * item for item in batch], stages.append, "doubling", 5)
    assert map_sorted(double, [3, 1, 2, 5, 4], 2, key=int) == [6, 2, 4, 10, 8]
    assert stages == [f"doubling: {done} of 5 texts" for done in (2, 4, 5)]


def test_a_signature_is_shown_before_its_first_call():
    """Which optimises the graph: for 30 layers that takes minutes."""
    shown = []

    def call(sentences):
        shown.append("called")
        texts, count = np.array(sentences), len(sentences)
        return {"text": texts, "score": np.zeros(count), "complete": np.ones(count, bool)}

    rows = _answers(Echo("tokens", None), call, [b"a", b"b"], shown.append, "here")
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
