"""Training of token classification: the tokens that count, and wrong examples."""

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from pipelines import SIZES, tokenizer

from keras_transformer.models import TokenClassifierConfig
from keras_transformer.tasks import TASKS
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.tasks import training_class

LABELS = ("O", "B-X", "I-X")
TEXTS = ["a cat runs", "zebra dog", "the big", "dog"]
NAMES = ["O B-X I-X", "B-X O", "O O", "B-X"]


def training():
    config = TokenClassifierConfig(vocab_size=30, **SIZES, labels=LABELS)
    return training_class(TASKS["token_classification"])(tokenizer(), config)


def corpus(texts=TEXTS, names=NAMES):
    rows = tf.data.Dataset.from_tensor_slices((texts, names))
    return Corpus.from_rows(rows, training(), 11)


def by_hand(text, names):
    """Returns the label's number at the first token of each word, -1 elsewhere."""
    numbers = []
    for word, name in zip(text.split(), names.split(), strict=True):
        pieces = tokenizer().encode([word]).to_list()[0][:-1]
        numbers += [LABELS.index(name)] + [-1] * (len(pieces) - 1)
    return [*numbers, -1]


def test_a_label_belongs_to_the_first_token_of_its_word():
    seen = []
    for tokens, labels in corpus().batches(24):
        for row, numbers in zip(tokens.numpy(), labels.numpy(), strict=True):
            length = int((row != 0).sum())
            assert (numbers[length:] == -1).all()
            seen.append((row[:length].tolist(), numbers[:length].tolist()))
    expected = [
        (tokenizer().encode([text]).to_list()[0], by_hand(text, names))
        for text, names in zip(TEXTS, NAMES, strict=True)
    ]
    assert sorted(seen) == sorted(expected)
    assert any(-1 in numbers[:-1] for _, numbers in expected), "a word has several pieces"


def test_only_first_tokens_count():
    labels = tf.constant([[1, -1, 0, -1], [2, -1, -1, -1], [0, 0, 0, 0]])
    # The last row is padding for a replica.
    tokens = tf.constant([[5, 6, 7, 3], [5, 3, 0, 0], [0, 0, 0, 0]])
    weights = training().weigh(tokens, labels)
    np.testing.assert_array_equal(weights, [[1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_follows_its_formula(smoothing):
    labels = np.array([[1, -1, 2], [0, 2, -1]])
    logits = np.random.default_rng(0).normal(size=(2, 3, 3))
    settings = type("Settings", (), {"label_smoothing": smoothing})
    losses = training().loss(settings).call(tf.constant(labels), tf.constant(logits, tf.float32))
    for b, s in zip(*np.nonzero(labels >= 0), strict=True):
        log_p = logits[b, s] - np.log(np.exp(logits[b, s]).sum())
        expected = -(1 - smoothing) * log_p[labels[b, s]] - smoothing * log_p.mean()
        assert float(losses[b, s]) == pytest.approx(expected, abs=1e-5)


def test_every_word_has_the_same_weight_in_any_batch():
    """The mean of row means would give words in short batches more weight."""
    rng = np.random.default_rng(1)
    (metric,) = training().metrics()
    right = []
    for length in (2, 7):
        labels = rng.integers(-1, 3, (3, length))
        logits = rng.normal(size=(3, length, 3)).astype("float32")
        weights = training().weigh(tf.ones_like(labels), tf.constant(labels))
        metric.update_state(labels, logits, sample_weight=weights)
        right.append((logits.argmax(-1) == labels)[labels >= 0])
    assert float(metric.result()) == pytest.approx(np.concatenate(right).mean(), abs=1e-6)


@pytest.mark.parametrize("names", ["O B-Y I-X", slow("O B-X"), slow("O B-X I-X O")])
def test_wrong_labels_are_reported_in_one_line(names):
    message = "train split of the data, example 2: `labels` must be a label for each word, .*B-X"
    with pytest.raises(ValueError, match=f"{message}.*Received: {names!r}"):
        corpus(["dog", "a cat runs"], ["B-X", names])
