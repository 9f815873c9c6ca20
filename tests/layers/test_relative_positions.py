"""Shaw's and T5's positions: formulas, gradients, 16 bits, refused arguments."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from keras import ops
from support import (
    KV,
    B,
    D,
    F,
    H,
    K,
    T,
    normal,
    random_mask,
    randomise,
    small_config,
    to_numpy,
    weights_of,
)

from keras_transformer import (
    EncoderBlock,
    MultiHeadSelfAttention,
    PositionalEmbedding,
    Transformer,
    TransformerConfig,
)
from keras_transformer.layers import Additive, Relative, T5Bias
from keras_transformer.positions.t5 import t5_buckets

# Every sentence of 11 tokens has larger distances than these.
POSITIONS = {"relative": Relative(4), "t5": T5Bias(9, 8)}
each_position = pytest.mark.parametrize("name", POSITIONS)
each_direction = pytest.mark.parametrize("causal", [False, True])


def attention(name, causal, **options):
    layer = MultiHeadSelfAttention(
        H, d_k=K, d_v=KV, causal=causal, position=POSITIONS[name], **options
    )
    layer.build((B, T, D))
    return randomise(layer)


def expected_of(name, layer, x, seen):
    """Returns output and weights of the reference, in float64."""
    weights = weights_of(layer)
    if name == "t5":
        bias = reference.t5_bias(weights.pop("distance_bias"), T, 9, layer.causal)
        return reference.multi_head(weights, x, x, seen, H, bias=bias)
    tables = weights.pop("relative_keys"), weights.pop("relative_values")
    keys, values = (reference.clipped(table, T, layer.causal) for table in tables)
    return reference.multi_head(
        weights, x, x, seen, H, key_vectors=keys, value_vectors=values
    )  # fmt: skip


@each_direction
@each_position
def test_attention_follows_the_formula(name, causal):
    layer, x, mask = attention(name, causal), normal(B, T, D), random_mask(B, T, T, seed=1)
    seen = mask & np.tri(T, dtype=bool) if causal else mask
    expected, expected_weights = expected_of(name, layer, x, seen)
    out, attended = layer(x, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(attended, expected_weights, rtol=0, atol=1e-5)
    tables = {"relative": ("relative_keys", "relative_values"), "t5": ("distance_bias",)}[name]
    for table in tables:  # each of them affects the output
        table = getattr(layer, table)
        before = table.numpy()
        table.assign(np.zeros_like(before))
        assert np.abs(layer(x, attention_mask=mask) - out).max() > 0.01
        table.assign(before)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 9), (8, 64), (4, 3), (12, 20)])
def test_buckets_equal_exact_integer_computation(buckets, farthest, causal):
    """Also where the ratio of two logarithms is an integer, as for 16, 32 and 64 of 128."""
    after = 0 if causal else farthest
    table = t5_buckets(after, farthest, buckets)
    for place, distance in enumerate(range(-after, farthest + 1)):
        assert table[place] == reference.t5_bucket(distance, 0, buckets, farthest, causal), distance


def test_buckets_of_the_paper():
    """32 for both directions: 0 to 7 are single distances; the rest begin at 8, 12, 16, 23 ..."""
    both = t5_buckets(128, 128, 32)
    assert both[128:136].tolist() == [*range(8)] and both[127] == 17 and both.max() == 31
    first = [int(np.argmax(both[128:] == bucket)) for bucket in range(8, 16)]
    assert first == [8, 12, 16, 23, 32, 46, 64, 91]
    np.testing.assert_array_equal(both[:128][::-1], both[129:] + 16)
    one = t5_buckets(0, 128, 32)
    assert one[:16].tolist() == [*range(16)] and one[113:].tolist() == [31] * 16


@pytest.mark.parametrize(
    ("policy", "name", "causal"),
    [
        ("float32", "t5", False),
        ("mixed_bfloat16", "relative", False),
        ("mixed_bfloat16", "t5", True),
        ("mixed_float16", "relative", True),
        ("mixed_float16", "t5", True),
    ],
    indirect=["policy"],
)
def test_every_dtype_follows_the_formula_with_dense_gradients(name, causal, policy):
    """For a row that occurs often, TensorFlow's own gradient would be a list of rows."""
    layer, x = attention(name, causal), normal(B, T, D)
    seen = np.broadcast_to(np.tri(T, dtype=bool) if causal else np.ones((T, T), bool), (B, T, T))
    expected, _ = expected_of(name, layer, x, seen)
    with tf.GradientTape() as tape:
        out = layer(x)
    atol = {"float32": 1e-5, "float16": 0.02, "bfloat16": 0.1}[policy.compute_dtype]
    np.testing.assert_allclose(to_numpy(out), expected, rtol=0, atol=atol)
    for gradient in tape.gradient(out, layer.trainable_variables):
        assert isinstance(gradient, tf.Tensor) and np.isfinite(to_numpy(gradient)).all()
    cache = tuple(ops.zeros((B, H, T, size), layer.compute_dtype) for size in (K, KV))
    if causal:
        for t in range(T):
            step, cache = layer.step(ops.cast(x[:, t : t + 1], layer.compute_dtype), cache, t)
            assert step.dtype == cache[0].dtype == layer.compute_dtype
            np.testing.assert_allclose(to_numpy(step)[:, 0], expected[:, t], rtol=0, atol=atol)


@each_position
def test_distant_positions_are_not_rounded_to_16_bits(name, policy):
    """Near 20 million, where float32 has even numbers only, it gives the same as near 0."""
    layer = attention(name, causal=False)
    heads = ops.cast(normal(B, H, 1, K), layer.compute_dtype)
    keys = np.arange(-6, 7)
    near, far = (
        (
            layer.position.bias(layer, heads, place, keys + place),
            layer.position.values(layer, place, keys + place),
        )
        for place in (6, 20_000_001)
    )
    for one, other in zip(near, far, strict=True):
        if one is not None:
            np.testing.assert_array_equal(to_numpy(one), to_numpy(other))
            rows = np.moveaxis(to_numpy(one), 1 if one.ndim == 3 and name == "relative" else -1, 0)
            assert len(np.unique(rows.reshape(13, -1), axis=0)) >= 7


KINDS = {
    "none": {"position": "none"},
    "alibi": {"position": "alibi"},
    "relative": {"position": {"kind": "relative", "distance": 4}},
    "t5": {"position": {"kind": "t5", "distance": 9, "buckets": 8}},
}


def test_each_attention_has_its_own_tables():
    """Two vectors or one bias per distance or bucket, in each of three self-attentions."""
    counts = {
        name: Transformer(small_config(**changes)).count_params() for name, changes in KINDS.items()
    }
    encoder, decoder = 2 * 4 + 1, 4 + 1  # the decoder has no vectors for keys after the query
    assert counts["relative"] - counts["none"] == (encoder + 2 * decoder) * (K + KV)
    assert counts["t5"] - counts["none"] == 3 * 8 * H
    assert counts["alibi"] == counts["none"]


def test_the_defaults_are_those_of_the_papers():
    config = TransformerConfig(position="relative", num_layers=1)
    assert config.encoder.position == Relative(16)
    config = TransformerConfig(position="t5", num_layers=1)
    assert config.encoder.position == T5Bias(128, 32)


REFUSED = [
    (lambda: Relative(0), r"`distance` must be at least 1\. Received: distance=0"),
    (lambda: T5Bias(128, 30), r"`buckets` must be a multiple of 4.*buckets=30, distance=128\."),
    (lambda: T5Bias(4, 8), r"and less than twice `distance`.*Received: buckets=8, distance=4\."),
    (
        lambda: small_config(position={"kind": "t5", "buckets": 6}),
        r"`position`: `buckets` must be .*buckets=6, distance=128\.",
    ),
    (
        lambda: small_config(position={"kind": "sinusoidal", "distance": 3}),
        "`position` of the kind 'sinusoidal' has the options layout, endpoint, offset. "
        "Received: distance",
    ),
    (
        lambda: EncoderBlock(H, F, position={"kind": "relative", "buckets": 8}),
        "`position` of the kind 'relative' has the options distance. Received: buckets",
    ),
    (
        lambda: small_config(position="relative", score="additive"),
        "`score` must be a product of query and key with relative or .*Additive",
    ),
    (
        lambda: MultiHeadSelfAttention(H, d_k=K, d_v=KV, position="relative", score="additive")(
            normal(B, T, D)
        ),
        "`score` must be a product of query and key with relative or .*Received: .*Additive",
    ),
    (
        lambda: PositionalEmbedding(19, D, position="relative"),
        '"relative" acts in self-attention.*`position="relative"`',
    ),
    (
        lambda: PositionalEmbedding(19, D, position="t5"),
        '"t5" acts in self-attention',
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_custom_score_may_be_linear():
    @keras.saving.register_keras_serializable(package="test")
    class Negative(Additive):
        kind, is_linear = "tests_negative", True

    layer = MultiHeadSelfAttention(H, d_k=K, d_v=KV, position="relative", score=Negative())
    layer.build((B, T, D))
    assert layer.relative_keys.shape == (33, K) and layer.relative_values.shape == (33, KV)
