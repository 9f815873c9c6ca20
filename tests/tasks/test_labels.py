"""The labels that training data decide."""

import itertools

import pytest
import tensorflow as tf

from keras_transformer.tasks import TASKS


def fields(*labels):
    texts = tf.data.Dataset.from_tensor_slices((["a text"] * len(labels), list(labels)))
    return TASKS["classification"].fields(texts)


def test_numbers_are_in_their_order_and_before_other_labels():
    assert fields("10", "2", "b", "-1", "a", " 2\t")["labels"] == ("-1", "2", "10", "a", "b")


@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_what_only_looks_like_a_number_has_one_place(odd):
    for labels in itertools.permutations(["10", "2", odd]):
        assert fields(*labels)["labels"] == ("2", "10", odd)


def test_labels_are_shown_so_that_a_header_is_seen():
    task = TASKS["classification"]
    assert task.describe(fields("label", "0", "1")) == "3 labels: '0', '1', 'label'."
    many = task.describe(fields(*map(str, range(30))))
    assert many.startswith("30 labels: '0', '1',") and many.endswith("'19', ....")
