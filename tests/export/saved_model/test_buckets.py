import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.export.saved_model.buckets import BucketedSearch, Buckets


def search(source):
    """A fake search that returns its input and the shape of its input."""
    shape = tf.repeat(tf.expand_dims(tf.shape(source), 0), tf.shape(source)[0], axis=0)
    return {"shape": shape, "total": tf.reduce_sum(source, axis=1), "source": source[:, :1]}


@pytest.fixture(scope="module")
def bucketed():
    run = BucketedSearch(search, Buckets((1, 4, 6), (5, 9)), pad_id=0, eos_id=3)
    return tf.function(run, input_signature=[tf.TensorSpec([None, None], tf.int32)])


@pytest.mark.parametrize("batch", [0, 1, 2, 4, 5, 6, 7, 12, 13, 29])
@pytest.mark.parametrize("length", [1, 5, 6, 9])
def test_each_sentence_gets_its_answer_from_one_of_the_shapes(bucketed, batch, length):
    source = np.random.default_rng(batch).integers(0, 50, (batch, length)).astype("int32")
    outputs = {name: value.numpy() for name, value in bucketed(source).items()}
    np.testing.assert_array_equal(outputs["total"], source.sum(axis=1))
    np.testing.assert_array_equal(outputs["source"], source[:, :1])
    assert outputs["shape"].shape == (batch, 2)
    size = next((size for size in (1, 4, 6) if size >= batch), 6)
    width = 5 if length <= 5 else 9
    assert (outputs["shape"] == [size, width]).all()


@pytest.mark.parametrize(
    ("sizes", "lengths", "name"),
    [((), (5,), "batch_sizes"), ((0, 4), (5,), "batch_sizes"), ((4, 4), (5,), "batch_sizes")]
    + [((1,), (9, 5), "lengths"), ((1,), (), "lengths")],
)
def test_buckets_are_positive_and_increasing(sizes, lengths, name):
    with pytest.raises(ValueError, match=f"`{name}` must be positive and increasing. Received"):
        Buckets(sizes, lengths)
