"""Class labels learned from the training data."""

import itertools

import pytest
import tensorflow as tf

from keras_transformer.tasks import TASKS


def fields(*labels):
    texts = tf.data.Dataset.from_tensor_slices((["a text"] * len(labels), list(labels)))
    return TASKS["classification"].survey(texts).fields


def test_numbers_are_sorted_and_come_before_other_labels():
    assert fields("10", "2", "b", "-1", "a", " 2\t")["labels"] == ("-1", "2", "10", "a", "b")


@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_labels_that_only_look_like_numbers_are_sorted_as_text(odd):
    for labels in itertools.permutations(["10", "2", odd]):
        assert fields(*labels)["labels"] == ("2", "10", odd)


def sentences(*labels):
    rows = tf.data.Dataset.from_tensor_slices((["a text"] * len(labels), list(labels)))
    return TASKS["classification"].survey(rows).sentences


def test_labels_are_shown_with_their_counts_to_reveal_a_header():
    shown = sentences("label", *["0", " 0\t"] * 600, *["1"] * 3)
    assert shown == (
        "3 labels: '0' (1,200), '1' (3), 'label' (1).",
        "Warning: 1 of them occurs only once in the training data and may be a typing error: "
        "'label'.",
    )
    assert sentences("0", "1", "0", "1") == ("2 labels: '0' (2), '1' (2).",)


def test_a_label_that_occurs_once_is_reported_with_the_similar_one():
    labels = ["positive"] * 3 + ["negative"] * 2
    text, warning = sentences(*labels, "postive", "Negative", "neutral")
    assert text.startswith("5 labels: 'Negative' (1), 'negative' (2), 'neutral' (1),")
    assert warning.startswith("Warning: 3 of them occur only once in the training data and may ")
    assert warning.endswith(
        ": 'Negative' (did you mean 'negative'?), 'neutral', 'postive' (did you mean 'positive'?)."
    )
    # Numbers are not typing errors.
    assert "did you mean" not in sentences("100", "100", "10", "1000")[1]


def test_of_many_labels_the_most_frequent_and_the_rarest_are_shown():
    labels = [f"x{n}" for n in range(1, 31) for _ in range(n)]
    text, warning = sentences(*labels)
    assert text.startswith("30 labels, the most frequent 'x30' (30), 'x29' (29), ")
    assert "'x21' (21); the rarest 'x10' (10), " in text and text.endswith("'x1' (1).")
    assert text.count("(") == 20 and warning.endswith(": 'x1'.")
    text, warning = sentences(*[f"x{n:04}" for n in range(1500)])
    assert text.startswith("1,500 labels, ") and text.count("(") == 20
    assert warning.startswith("Warning: 1,500 of them occur only once ")
    assert warning.endswith("'x0018', 'x0019' and 1,480 more.")
