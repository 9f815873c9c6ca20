"""The loss of vectors of images against its formula in plain loops."""

import math

import numpy as np

from keras_transformer.training.tasks.image_embedding import SupervisedContrastiveLoss

LABELS = np.array([7, 3, 7, 9, 3, 7])


def expected(vectors, labels, scale):
    """Khosla et al. (2020), Eq. 2."""
    losses = []
    for i, label in enumerate(labels):
        others = [a for a in range(len(labels)) if a != i]
        total = sum(math.exp(scale * vectors[i] @ vectors[a]) for a in others)
        same = [p for p in others if labels[p] == label]
        terms = [-math.log(math.exp(scale * vectors[i] @ vectors[p]) / total) for p in same]
        losses.append(sum(terms) / len(terms) if terms else 0.0)
    return losses


def test_each_image_is_compared_with_all_others():
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    losses = SupervisedContrastiveLoss(5.0).call(LABELS, vectors).numpy()
    np.testing.assert_allclose(losses, expected(vectors, LABELS, 5.0), rtol=0, atol=1e-5)


def test_rows_of_padding_are_not_compared():
    vectors = np.random.default_rng(1).normal(size=(6, 4)).astype("float32")
    padded = np.concatenate([vectors, vectors[:2]])
    labels = np.concatenate([LABELS, [-1, -1]])
    loss = SupervisedContrastiveLoss(2.0)
    alone = loss.call(LABELS, vectors).numpy()
    np.testing.assert_allclose(loss.call(labels, padded).numpy()[:6], alone, rtol=1e-6, atol=0)
