"""A corpus of arrays: every example once per epoch, in an order set by seed and epoch."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.fields import Field, Series
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.data.stream import endless_batches

SIZE, BATCH = 11, 4


class Number(Field):
    """An integer for each example."""

    def encode(self, column):
        return column


def columns(size=SIZE):
    return [
        np.arange(size * 6, dtype="float32").reshape(size, 2, 3),
        np.arange(size, dtype="int32"),
    ]


class Pairs:
    """The columns of a training task."""

    columns = ("images", "labels")
    fields = {"images": Series(2, 3), "labels": Number()}
    packed, encoded_together = False, None

    def identity(self):
        return {name: field.identity() for name, field in self.fields.items()}

    def encode(self, columns):
        return {name: field.encode(columns[name]) for name, field in self.fields.items()}

    def assemble(self, images, labels):
        return images, labels


def corpus(vary=None, size=SIZE, arrays=None):
    rows = tf.data.Dataset.from_tensor_slices(tuple(arrays or columns(size)))
    return Corpus(Corpus.from_rows(rows, Pairs()).store, Pairs(), vary)


def numbers(dataset):
    return [labels.numpy().tolist() for _, labels in dataset]


def epoch_of(epoch, seed=0, **options):
    return numbers(corpus().epochs(BATCH, seed).batches(epoch, **options))


def test_batches_are_the_examples_in_their_order():
    batches = list(corpus().batches(BATCH))
    assert [len(labels) for _, labels in batches] == [4, 4, 3] and corpus().steps(BATCH) == 3
    for whole, column in zip(columns(), zip(*batches, strict=True), strict=True):
        np.testing.assert_array_equal(np.concatenate(column), whole)


@pytest.mark.slow
def test_an_epoch_contains_every_example_once_in_its_own_order():
    first, second = epoch_of(0), epoch_of(1)
    for epoch in (first, second):
        assert sorted(map(len, epoch)) == [3, 4, 4]
        assert sorted(sum(epoch, [])) == list(range(SIZE))
    assert first != second != epoch_of(1, seed=1)
    assert first == epoch_of(0) and second == epoch_of(1)


def test_rows_stay_together():
    for images, labels in corpus().epochs(BATCH, 3).batches(2):
        np.testing.assert_array_equal(images, columns()[0][labels.numpy()])


@pytest.mark.slow
def test_a_training_resumes_with_the_next_batch(skip=7):
    epochs = corpus(vary=noisy).epochs(BATCH, 5)
    whole = list(endless_batches(epochs).take(9))
    rest = list(endless_batches(epochs, skip=skip).take(9 - skip))
    for (one, _), (two, _) in zip(whole[skip:], rest, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_the_micro_batches_of_an_update_are_consecutive_batches():
    epochs = corpus().epochs(BATCH, 5)
    single = numbers(endless_batches(epochs).take(6))
    pairs = list(endless_batches(epochs, accumulate=2).take(3))
    assert [labels.numpy().tolist() for pair in pairs for _, labels in pair] == single


def noisy(draws, columns):
    return {**columns, "images": columns["images"] + tf.reshape(draws[:, 0], (-1, 1, 1))}


@pytest.mark.slow
def test_augmentation_depends_on_example_seed_and_epoch():
    def added(epoch, seed=5, size=BATCH):
        found = {}
        for images, labels in corpus(vary=noisy).epochs(size, seed).batches(epoch):
            for image, label in zip(images.numpy(), labels.numpy(), strict=True):
                found[int(label)] = float((image - columns()[0][label])[0, 0])
        return [found[label] for label in range(SIZE)]

    one = added(0)
    assert one == added(0, size=7), "in batches of any size"
    assert len(set(one)) == SIZE
    assert one != added(1) and one != added(0, seed=6)
    for image, _ in corpus(vary=noisy).batches(SIZE):
        np.testing.assert_array_equal(image, columns()[0])  # validation is not augmented


def test_a_fingerprint_depends_on_every_number_and_its_place():
    ours = corpus().fingerprint
    assert ours == corpus(vary=noisy).fingerprint
    for change in (
        lambda a, b: (a[::-1], b),
        lambda a, b: (a, b + 1),
        lambda a, b: (a[:, :, ::-1], b),
    ):
        assert corpus(arrays=change(*columns())).fingerprint != ours


def test_an_empty_corpus_is_refused():
    with pytest.raises(ValueError, match="at least one example. Received: none."):
        corpus(size=0)
