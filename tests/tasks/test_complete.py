"""Outputs that were cut at their maximum length are marked, by the library and by commands."""

import io

import numpy as np
import pytest
import tensorflow as tf
from support import small_config

from keras_transformer import Beam, Greedy
from keras_transformer.cli.streaming import INCOMPLETE, answer_stream
from keras_transformer.tasks.graphs import complete_outputs
from keras_transformer.tasks.results import Generated, Summary, Translation, to_n_best

ENDED, CUT, LAST = [7, 3, 0, 0], [7, 8, 9, 7], [7, 8, 9, 3]


@pytest.mark.parametrize("forced", [None, 3])
def test_an_output_without_an_end_or_with_a_forced_one_is_cut(forced):
    config = small_config(forced_eos_id=forced)
    tokens = tf.constant([[ENDED, CUT], [LAST, CUT]])
    found = complete_outputs(config, Greedy(), tokens, tf.constant([9, 9]), 4)
    np.testing.assert_array_equal(found, [[True, False], [forced is None, False]])


@pytest.mark.parametrize(
    ("search", "changes"),
    [
        (Greedy(2), {}),
        (Greedy(tf.constant(2)), {}),
        (Greedy(), {"length_factor": 0.5}),
        (Beam(extra_length=0, max_length=2), {}),
    ],
)
def test_every_limit_counts_where_an_end_is_forced(search, changes):
    config = small_config(forced_eos_id=3, **changes)
    tokens, lengths = tf.constant([[ENDED], [ENDED]]), tf.constant([3, 4])
    assert not complete_outputs(config, search, tokens, lengths, 4).numpy().any()
    assert complete_outputs(config, Greedy(), tokens, lengths * 4, 4).numpy().all()


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
