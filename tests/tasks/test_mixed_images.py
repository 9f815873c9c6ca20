"""The images that a validation of vectors classifies by each other."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.tasks.image_embedding.task import ImageEmbeddingTask, mixed

TASK = ImageEmbeddingTask()


def in_folders(counts):
    """Labels of images in the order in which folders are read."""
    return [label for label, count in sorted(counts.items()) for _ in range(count)]


def test_all_labels_are_chosen_with_equal_shares():
    labels = in_folders({"ape": 40, "bee": 40, "cat": 40})
    numbers = mixed(labels, 24)
    assert numbers == sorted({*numbers})
    assert collections.Counter(labels[n] for n in numbers) == {"ape": 8, "bee": 8, "cat": 8}


def test_some_labels_with_several_images_if_there_are_too_many():
    labels = in_folders({f"{number:03}": 9 for number in range(100)})
    chosen = collections.Counter(labels[n] for n in mixed(labels, 20))
    assert chosen == {"000": 5, "025": 5, "050": 5, "075": 5}


def test_rare_labels_leave_their_share_to_the_others():
    labels = in_folders({"ape": 1, "bee": 50, "cat": 3})
    chosen = collections.Counter(labels[n] for n in mixed(labels, 20))
    assert chosen == {"bee": 17, "cat": 3}


@pytest.mark.parametrize("limit", [4, 5, 9])
def test_a_low_limit_leaves_two_labels(limit):
    labels = in_folders({f"{number:03}": 9 for number in range(100)})
    chosen = collections.Counter(labels[n] for n in mixed(labels, limit))
    assert len(chosen) == 2 and sum(chosen.values()) == limit and min(chosen.values()) >= 2


@pytest.mark.parametrize("limit", [51, 1000])
def test_a_split_within_the_limit_is_taken_whole(limit):
    assert mixed(in_folders({"ape": 1, "bee": 50}), limit) == list(range(51))


def test_rows_keep_image_and_label_together():
    labels = in_folders({"ape": 30, "bee": 30, "cat": 30})
    images = np.arange(90, dtype="uint8")[:, None, None, None]
    rows = tf.data.Dataset.from_tensor_slices((images, labels))
    chosen = [
        (int(i.max()), la.decode()) for i, la in TASK.validation_rows(rows, 15).as_numpy_iterator()
    ]
    assert len(chosen) == 15
    assert {label for _, label in chosen} == {"ape", "bee", "cat"}
    assert all(labels[number] == label for number, label in chosen)


@pytest.mark.parametrize(
    ("counts", "limit"), [({"ape": 30, "bee": 30}, 3), ({"ape": 30}, 200), ({"ape": 1}, 200)]
)
def test_a_validation_that_shows_nothing_is_refused_before_training(counts, limit):
    labels = in_folders(counts)
    rows = tf.data.Dataset.from_tensor_slices((np.zeros((len(labels), 1)), labels))
    message = f"at least two labels with two images each: .* at least 4.*{len(labels)} validation"
    with pytest.raises(ValueError, match=message):
        TASK.validation_rows(rows, limit)
