"""Rows of ragged tensors, against TensorFlow's own functions, and their memory."""

import resource
import string

import bpe_in_python
import numpy as np
import pytest
import tensorflow as tf
from test_wordpiece import SPECIAL

from keras_transformer.text.ragged_rows import repeated, row_ids, row_sums
from keras_transformer.text.tokenizers import ByteBPETokenizer, WordPieceTokenizer

LONG, MANY = 100_000, 6000  # letters of one text, and number of texts; a table has 600 million
ROWS = [[], [3, 1, 4], [], [], [1, 5], [9], [], []]


@pytest.mark.parametrize("rows", [ROWS, ROWS[1:2], [[], []], []])
def test_rows_are_those_of_tensorflow(rows):
    ragged = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
    assert row_ids(ragged).numpy().tolist() == ragged.value_rowids().numpy().tolist()
    assert row_ids(ragged).dtype == ragged.value_rowids().dtype
    assert row_sums(ragged).numpy().tolist() == [sum(row) for row in rows]


@pytest.mark.parametrize("counts", [[2, 0, 3, 0, 1], [0, 0], []])
def test_values_are_repeated(counts):
    values = np.arange(len(counts), dtype="int32") + 7
    found = repeated(values, tf.constant(counts, tf.int64)).numpy()
    np.testing.assert_array_equal(found, np.repeat(values, counts))


@pytest.mark.slow
def test_one_long_text_does_not_widen_the_others(kind="byte-bpe"):
    """The peak of memory grows by far less than a table with a byte for each place."""
    if kind == "wordpiece":
        letters = [*string.ascii_lowercase]
        tokenizer = WordPieceTokenizer([*SPECIAL, *letters, *(f"##{x}" for x in letters)])
    else:
        marks = ["<s>", "<pad>", "</s>", "<unk>"]
        tokenizer = ByteBPETokenizer(bpe_in_python.vocabulary([], marks), [])
    tokenizer.tokenize(["a dog"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = tokenizer.tokenize(["a dog"] * MANY + ["ab" * (LONG // 2)])
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert found.nrows() == MANY + 1 and found[0].shape[0] == 4 + (kind == "byte-bpe")
    assert growth < LONG * MANY / 2**11, f"{growth} KiB"
