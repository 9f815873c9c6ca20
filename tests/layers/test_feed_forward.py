"""Eq. 2 against the reference."""

import numpy as np
import pytest
import reference
from support import B, D, F, T, normal, randomise, to_numpy, weights_of

from keras_transformer import FeedForward


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_feed_forward_is_equation_2(activation):
    layer = FeedForward(F, activation=activation)
    x = normal(B, T, D)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    shapes = {path: weight.shape for path, weight in weights.items()}
    assert shapes == {
        "inner/kernel": (D, F),
        "inner/bias": (F,),
        "outer/kernel": (F, D),
        "outer/bias": (D,),
    }
    expected = reference.feed_forward(weights, x.astype("float64"), activation)
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=1e-5)


def test_every_position_is_treated_alike_and_independently():
    layer = FeedForward(F)
    x = normal(B, T, D)
    out = to_numpy(layer(x))
    order = np.random.default_rng(1).permutation(T)
    np.testing.assert_allclose(layer(x[:, order]), out[:, order], rtol=0, atol=1e-6)
    x[:, 3] += 1
    changed = np.abs(to_numpy(layer(x)) - out).max(axis=(0, 2)) > 0
    assert list(np.flatnonzero(changed)) == [3]


def test_dropout_is_applied_between_the_matrices_and_only_in_training():
    layer = FeedForward(F, dropout=0.99999)
    x = normal(B, T, D)
    layer.build(x.shape)
    weights = weights_of(randomise(layer))
    expected = reference.feed_forward(weights, x.astype("float64"))
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=1e-5)
    bias = np.broadcast_to(weights["outer/bias"], x.shape)
    np.testing.assert_allclose(layer(x, training=True), bias, rtol=0, atol=1e-6)


def test_the_width_must_be_positive():
    with pytest.raises(ValueError, match=r"`d_ff` must be .*Received: d_ff=0"):
        FeedForward(0)
