"""Outputs that were cut at their maximum length are marked, by the library and by commands."""

import io

import numpy as np
import pytest
import tensorflow as tf
from pipelines import translator
from support import small_config

from keras_transformer import Beam, Greedy, Transformer, Translator
from keras_transformer.decoding import EncoderDecoder, SearchOptions
from keras_transformer.opening.stream import answer_stream
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.incomplete import INCOMPLETE, count_incomplete
from keras_transformer.tasks.results import (
    Generated,
    Summary,
    Translation,
    to_n_best,
)

ENDED, CUT, LAST = [7, 3, 0, 0], [7, 8, 9, 7], [7, 8, 9, 3]


def complete_of(monkeypatch, search, tokens, lengths, **options):
    """Returns `complete` of a search that finds the given tokens, for sources of these lengths."""
    predictor = EncoderDecoder(Transformer(small_config(**options)))
    tokens = tf.constant(tokens)
    found = {"tokens": tokens, "scores": tf.zeros(tokens.shape[:2])}
    monkeypatch.setattr(type(search), "_outputs", lambda *arguments: found)
    source = np.where(np.arange(max(lengths)) < np.array(lengths)[:, None], 5, 0)
    return search(
        predictor, source, SearchOptions(n_best=tokens.shape[1], cache_length=tokens.shape[2])
    ).complete.numpy()


@pytest.mark.parametrize("forced", [None, 3])
def test_an_output_without_an_end_or_with_a_forced_one_is_cut(forced, monkeypatch):
    search, tokens = Beam(2), [[ENDED, CUT], [LAST, CUT]]
    found = complete_of(monkeypatch, search, tokens, [9, 9], forced_eos_id=forced)
    np.testing.assert_array_equal(found, [[True, False], [forced is None, False]])


@pytest.mark.parametrize(
    ("search", "changes"),
    [
        (Greedy(2), {}),
        (Greedy(tf.constant(2)), {}),
        (Greedy(), {"max_length_ratio": 0.5}),
        (Beam(2, extra_length=0, max_length=2), {}),
    ],
)
def test_every_limit_counts_where_an_end_is_forced(search, changes, monkeypatch):
    options = {"forced_eos_id": 3, **changes}
    assert not complete_of(monkeypatch, search, [[ENDED], [ENDED]], [3, 3], **options).any()
    unlimited = type(search)()
    assert complete_of(monkeypatch, unlimited, [[ENDED], [ENDED]], [9, 9], **options).all()


def test_results_hold_it_if_it_is_known():
    outputs = {
        "text": tf.constant([["a", "b"]]),
        "score": tf.constant([[-1.0, -2.0]]),
        "truncated": tf.constant([False]),
    }
    assert [result.complete for result in to_n_best(outputs, 2)[0]] == [None, None]
    outputs["complete"] = tf.constant([[True, False]])
    assert [result.complete for result in to_n_best(outputs, 2)[0]] == [True, False]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Translation, [f"line 3: {INCOMPLETE}"]),
        (Summary, [f"line 3: {INCOMPLETE}"]),
        (Generated, []),
    ],
)
def test_a_warning_names_the_line_unless_the_text_may_stop_anywhere(kind, expected):
    def search(numbers, texts, batch_size, progress):
        return [
            [kind(text, 0.0, False, complete={"a": True, "b": False}.get(text))] for text in texts
        ]

    warnings, out = [], io.BytesIO()
    answer_stream(search, io.BytesIO(b"a\n\nb\nc\n"), out, warnings.append)
    assert warnings == expected and out.getvalue() == b"a\n\nb\nc\n"


def test_evaluation_counts_and_names_outputs_that_were_cut():
    results = [Translation("", 0.0, False, complete=flag) for flag in (True, False, None, False)]
    numbers = []
    assert count_incomplete(results, numbers.append) == count_incomplete(results) == 2
    assert numbers == [2, 4]


class Marked(Translator):
    """A translator of a user that changes the texts."""

    def __call__(self, *args, **kwargs):
        return [f"{text}!" for text in super().__call__(*args, **kwargs)]


@pytest.mark.slow
def test_an_evaluation_measures_what_a_subclass_answers():
    own = translator()
    marked = Marked(own.model, own.tokenizers, own.max_length)
    texts, details = TASKS["translation"].answer(marked, ["a dog"])
    assert texts == [f"{text}!" for text in own(["a dog"])] and "incomplete" not in details
