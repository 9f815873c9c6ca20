"""Binary positions: exact digits, distinct codes, and refused arguments."""

import numpy as np
import pytest
import reference
from support import B, D, T, normal, to_numpy

from keras_transformer import MultiHeadSelfAttention, PositionalEmbedding, TransformerConfig
from keras_transformer.layers import Binary
from keras_transformer.positions.binary import binary_digits

V = 19


@pytest.mark.parametrize("d_model", [5, 16, D, 37])
def test_the_digits(d_model):
    np.testing.assert_array_equal(binary_digits(29, d_model), reference.binary(29, d_model))


def test_65536_positions_have_different_codes():
    table = binary_digits(2**16, 16)
    numbers = (table > 0) @ 2 ** np.arange(16)
    np.testing.assert_array_equal(numbers, np.arange(2**16))
    assert set(np.unique(table)) == {-1, 1}


def test_an_embedding_adds_them_in_every_dtype(policy):
    """Positions are exact: with an embedding table of zeros, the output is the positions."""
    layer = PositionalEmbedding(V, D, position="binary", max_length=600)
    tokens = np.ones((B, T), "int32")
    layer.build(tokens.shape)
    layer.set_weights([np.zeros((V, D))])
    expected = reference.binary(512 + T, D)[512:]
    np.testing.assert_array_equal(to_numpy(layer(tokens, start=512))[0], expected)
    assert len(layer.weights) == 1


def test_the_sum_of_embedding_and_position():
    layer = PositionalEmbedding(V, D, position=Binary(), max_length=T)
    tokens = np.random.default_rng(0).integers(0, V, (B, T)).astype("int32")
    layer.build(tokens.shape)
    table = to_numpy(layer.table)
    expected = reference.embedding({"table": table}, tokens, "binary")
    np.testing.assert_allclose(layer(tokens), expected, rtol=0, atol=1e-5)


def test_more_positions_than_digits_are_refused():
    message = r"`max_length` must be at most 2 to the power of `d_model`.*Received: 33 positions, "
    with pytest.raises(ValueError, match=message + r"d_model=5\."):
        PositionalEmbedding(V, 5, position="binary", max_length=33)
    assert PositionalEmbedding(V, 5, position="binary", max_length=32).position.get_config() == {}
    with pytest.raises(ValueError, match=r"at most 65,536, .*Received: 65537 positions"):
        TransformerConfig(position="binary", max_length=65_537)
    layer = PositionalEmbedding(V, 3, position="binary", max_length=7)
    assert layer(np.ones((1, 8), "int32")).shape == (1, 8, 3)
    with pytest.raises(ValueError, match=r"Received: 9 positions, d_model=3\."):
        layer(np.ones((1, 9), "int32"))


def test_a_self_attention_refuses_them():
    with pytest.raises(ValueError, match='must act in self-attention, but "binary" is'):
        MultiHeadSelfAttention(2, position="binary")(normal(B, T, D))
