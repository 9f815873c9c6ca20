"""Fields: columns of values as tensors, invalid values, and the keys of a store."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines import tokenizer

from keras_transformer.fields import Frames, Images, Labels, Series, Spans, TokenLabels, Tokens
from keras_transformer.tokenizers import WordPieceTokenizer

NAMES = ("few", "some")
FIELDS = {
    "tokens": lambda: Tokens(tokenizer()),
    "frames": lambda: Frames(3),
    "images": lambda: Images(2, 3, 1),
    "series": lambda: Series(5, 2),
    "labels": lambda: Labels(NAMES),
    "token_labels": lambda: TokenLabels(NAMES),
    "spans": lambda: Spans(),
}
COLUMNS = {
    "tokens": ["a cat", "", "the big dog"],
    "frames": tf.ragged.constant([[[1.0] * 3] * 2, [], [[2.0] * 3] * 5], ragged_rank=1),
    "images": np.arange(18, dtype="uint8").reshape(3, 2, 3, 1),
    "series": np.ones((3, 5, 2)),
    "labels": ["few", " some\n", "none"],
    "token_labels": ["few some few", "", "some"],
    "spans": [[0, 2], [3, 3], [-1, 4]],
}


def encode(kind, column=None):
    """Returns the encoded column, computed in a graph."""
    field = FIELDS[kind]()
    ragged = isinstance(column, tf.RaggedTensor)
    encoded = tf.function(field.encode)(column if ragged else tf.convert_to_tensor(column))
    return field, encoded


@pytest.mark.parametrize("kind", FIELDS)
def test_an_encoded_column_has_the_declared_shape_and_type(kind):
    column = COLUMNS[kind]
    field, encoded = encode(kind, column)
    assert isinstance(encoded, tf.RaggedTensor) == field.is_ragged
    items = encoded.flat_values if field.is_ragged else encoded
    assert tuple(items.shape[1:]) == field.item_shape
    kept = items.numpy().astype(field.dtype)
    np.testing.assert_array_equal(kept.astype(items.dtype.as_numpy_dtype), items)
    assert len(encoded if not field.is_ragged else encoded.row_lengths()) == 3
    padding = np.array(field.padding).astype(field.dtype)
    assert padding == field.padding or not field.is_ragged


@pytest.mark.parametrize("kind", FIELDS)
def test_an_identity_changes_with_everything_that_affects_the_encoding(kind):
    assert FIELDS[kind]().identity() == FIELDS[kind]().identity()
    identities = [str(make().identity()) for make in FIELDS.values()]
    assert len(set(identities)) == len(FIELDS)
    assert Labels(("some", "few")).identity() != Labels(NAMES).identity()
    assert Frames(4).identity() != Frames(3).identity()
    assert Frames(4, max_length=9).identity() != Frames(4, max_length=8).identity()
    assert Series(5, 3).identity() != Series(5, 2).identity()


def test_a_truncated_text_keeps_its_end_token():
    field, encoded = encode("tokens", COLUMNS["tokens"])
    eos = tokenizer().eos_id
    assert all(row[-1] == eos for row in encoded.to_list())
    cut = field.truncate(encoded, 2)
    assert [len(row) for row in cut.to_list()] == [2, 1, 2]
    assert all(row[-1] == eos for row in cut.to_list())
    short = encoded.row_lengths().numpy() < field.min_length
    assert short.tolist() == [False, True, False]
    assert field.files() == {".model": tokenizer().model}


@pytest.mark.slow
def test_a_text_without_tokens_is_empty_whatever_its_special_tokens():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    field = Tokens(WordPieceTokenizer([*special, "a"]))
    encoded = field.encode(["a", ""])
    assert encoded.to_list() == [[2, 4, 3], [2, 3]]
    assert (encoded.row_lengths().numpy() < field.min_length).tolist() == [False, True]


def test_frames_are_sequences_of_vectors():
    field, encoded = encode("frames", COLUMNS["frames"])
    assert encoded.row_lengths().numpy().tolist() == [2, 0, 5]
    assert field.truncate(encoded, 3).row_lengths().numpy().tolist() == [2, 0, 3]
    padded = encoded.to_tensor(field.padding, shape=[None, 7, 3])
    assert padded.shape == (3, 7, 3) and padded[0, 2].numpy().tolist() == [0.0, 0.0, 0.0]
    dense = field.encode(tf.ones([2, 4, 3]))
    assert dense.row_lengths().numpy().tolist() == [4, 4]
    broken = tf.ragged.constant([[[1.0] * 3], [[1.0, np.nan, 1.0]]], ragged_rank=1)
    assert field.is_valid(field.encode(broken)).numpy().tolist() == [True, False]
    assert field.explain() == "frames of 3 finite numbers"
    with pytest.raises(
        ValueError, match="must have frames of 3 features. Received: frames of 2[.]"
    ):
        field.encode(tf.ones([2, 4, 2]))
    with pytest.raises(ValueError, match="`num_features` must be positive. Received: .*=0"):
        Frames(0)


def test_batches_of_frames_are_padded_to_their_own_lengths():
    def examples():
        for length in (2, 5, 1):
            yield np.full((length, 3), length, "float32")

    spec = tf.TensorSpec([None, 3], tf.float32)
    rows = tf.data.Dataset.from_generator(examples, output_signature=spec)
    (batch,) = rows.ragged_batch(3).map(Frames(3).encode)
    assert batch.row_lengths().numpy().tolist() == [2, 5, 1]
    assert batch.flat_values.shape == (8, 3)


def test_values_that_cannot_be_used_are_distinguished():
    for kind, valid, words in (
        ("labels", [True, True, False], "one of the training data's labels, few, some"),
        ("spans", [True, True, False], "a span of the text that begins at the given position"),
    ):
        field, encoded = encode(kind, COLUMNS[kind])
        assert field.is_valid(encoded).numpy().tolist() == valid
        assert field.explain() == words
    field, encoded = encode("token_labels", ["few some", "some other", ""])
    assert encoded.to_list() == [[0, 1], [1, -2], []]
    assert field.is_valid(encoded).numpy().tolist() == [True, False, True]
    assert field.explain() == "a label for each word, from few, some"
    series = np.ones((2, 5, 2))
    series[1, 3, 0] = np.inf
    field, encoded = encode("series", series)
    assert field.is_valid(encoded).numpy().tolist() == [True, False]
    assert field.explain() == "5 steps of 2 finite numbers"
    assert FIELDS["images"]().is_valid(None) is None
    assert FIELDS["images"]().explain() == "an image of 2 x 3 pixels with 1 channels"
