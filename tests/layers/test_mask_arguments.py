"""Explicit masks: of padding `[B, S]`, of attention `[B, T, S]`; others are refused by name."""

import functools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from support import KV, D, F, H, K, S, T, normal, randomise, small_config

from keras_transformer import (
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    MultiHeadSelfAttention,
    Transformer,
)
from keras_transformer.layers import MultiHeadCrossAttention, PaddingMask, padding_mask

B = H  # so that a mask [B, S] could be mistaken for one per head
SAME = {"rtol": 0, "atol": 1e-5}
BLOCK = {"num_heads": H, "d_ff": F, "d_k": K, "d_v": KV, "dropout": 0.0}
LAYERS = {
    "self": lambda: MultiHeadSelfAttention(H, d_k=K, d_v=KV),
    "causal": lambda: MultiHeadSelfAttention(H, d_k=K, d_v=KV, causal=True),
    "cross": lambda: MultiHeadCrossAttention(H, d_k=K, d_v=KV),
    "encoder_block": lambda: EncoderBlock(**BLOCK),
    "encoder": lambda: Encoder(2, **BLOCK),
    "decoder_block": lambda: DecoderBlock(**BLOCK),
    "decoder": lambda: Decoder(2, **BLOCK),
}
# Layer, name of the mask of attention and of that of padding, number of keys.
MASKS = [
    ("self", "attention_mask", "mask", T),
    ("causal", "attention_mask", "mask", T),
    ("cross", "attention_mask", "memory_mask", S),
    ("encoder_block", "attention_mask", "mask", T),
    ("encoder", "attention_mask", "mask", T),
    ("decoder_block", "attention_mask", "mask", T),
    ("decoder", "attention_mask", "mask", T),
    ("decoder_block", "memory_attention_mask", "memory_mask", S),
    ("decoder", "memory_attention_mask", "memory_mask", S),
]
each_mask = pytest.mark.parametrize("layer, name, padding, length", MASKS)


@functools.cache
def make(layer):
    """Returns the layer, built with distinct weights, and its call arguments except masks."""
    inputs = [normal(B, T, D)]
    if layer in ("cross", "decoder_block", "decoder"):
        inputs.append(normal(B, S, D, seed=1))
    made = LAYERS[layer]()
    made(*inputs)
    return randomise(made), inputs


def real_keys(length):
    """Returns boolean `[B, length]` with a different number of real keys in each sentence."""
    return np.arange(length) < np.array([[length], [length - 4], [2]])


@pytest.mark.parametrize(
    ("layer", "name", "padding", "length"),
    [slow(*row) if row[0] != "decoder" else row for row in MASKS if row[0] != "causal"],
)
def test_a_mask_of_padding_is_sentences_and_keys(layer, name, padding, length):
    made, inputs = make(layer)
    real = real_keys(length)
    out = made(*inputs, **{padding: real})
    np.testing.assert_array_equal(out, made(*inputs, **{name: real[:, None]}))
    wide = np.broadcast_to(real[:, None], (B, T, length))
    np.testing.assert_allclose(out, made(*inputs, **{name: wide}), **SAME)
    assert np.abs(out - made(*inputs)).max() > 0.01
    for row in range(B):  # each sentence without its padding
        alone = [value[row : row + 1] for value in inputs]
        keys = 1 if padding == "memory_mask" else 0
        if keys == 0 and layer != "self" and len(inputs) == 2:
            continue  # the queries are also the keys
        count = real[row].sum()
        alone[keys] = alone[keys][:, :count]
        expected = made(*alone)
        np.testing.assert_allclose(out[row : row + 1, : expected.shape[1]], expected, **SAME)


def wrong(length):
    """Returns masks that do not fit, by the reason."""
    return {
        "one axis": np.ones(length, bool),
        "four axes": np.ones((B, 1, 1, length), bool),
        "another batch": np.ones((2, 1, length), bool),
        "padding": real_keys(length),
        "queries and keys": np.ones((T, length), bool),
        "a batch of heads": np.ones((B * H, T, length), bool),
        "other keys": np.ones((B, 1, length - 1), bool),
        "one key": np.ones((B, 1, 1), bool),
        "one key for each query": np.ones((B, T, 1), bool),
        "other queries": np.ones((B, T - 1, length), bool),
        "additive": np.where(real_keys(length), 0.0, -1e9).astype("float32"),
        "integers": real_keys(length).astype("int32"),
    }


@pytest.mark.parametrize("kind", wrong(T))
@each_mask
def test_masks_that_do_not_fit_are_refused_by_name(layer, name, padding, length, kind):
    made, inputs = make(layer)
    mask = wrong(length)[kind]
    message = (
        rf"^`{name}` must be boolean, \[B, 1, S\] or \[B, T, S\]; `{padding}` takes padding, "
        rf"\[B, S\] \(B may be 1\), with B, T, S = \[{B}, {T}, {length}\]\. "
        rf"Received by '{made.name}': dtype={mask.dtype}, shape={re.escape(str(mask.shape))}\.$"
    )
    with pytest.raises((TypeError, ValueError), match=message):
        made(*inputs, **{name: mask})


@pytest.mark.parametrize("shape", [(B,), (B, 1, T), (B, T + 1), (2, T)])
def test_a_mask_of_keras_has_two_axes(shape):
    made, inputs = make("encoder_block")
    with pytest.raises(ValueError, match=r"^`mask` must be boolean, \[B, S\] \(B may be 1\)"):
        made(*inputs, mask=np.ones(shape, bool))


def at_run_time(layer, name, jit_compile=False):
    """Builds a graph of the layer in which only the width of all shapes is known."""
    made, inputs = make(layer)

    @tf.function(jit_compile=jit_compile, autograph=False)
    def call(inputs, mask):
        return made(*inputs, **{name: mask})

    specification = [tf.TensorSpec([None, None, D])] * len(inputs)

    def concrete(mask):
        spec = tf.TensorSpec([None] * np.ndim(mask), tf.bool)
        return call.get_concrete_function(specification, spec)

    return made, inputs, concrete


def fitting(length):
    real = real_keys(length)
    return {
        "one axis of queries": real[:, None],
        "all queries": np.repeat(real[:, None], T, axis=1),
        "one batch": real[1:2, None],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "name", "length"),
    [
        slow("self", "attention_mask", 11),
        slow("cross", "attention_mask", 13),
        slow("encoder", "attention_mask", 11),
        ("decoder", "memory_attention_mask", 13),
    ],
)
def test_masks_are_checked_when_the_graph_runs(layer, name, length):
    made, inputs, concrete = at_run_time(layer, name)
    for kind, mask in fitting(length).items():
        outputs = concrete(mask)(inputs, mask)
        expected = made(*inputs, **{name: mask})
        np.testing.assert_allclose(outputs, expected, **SAME, err_msg=kind)
    for kind in ("another batch", "other keys", "one key", "one key for each query"):
        mask = wrong(length)[kind]
        shape = " ".join(map(str, mask.shape))
        message = (
            rf"`{name}` must be boolean, .* B, T, S = \] \[{B} {T} {length}\] \[Received by "
            rf".{{1,3}}{made.name}.{{1,3}}: dtype=bool, shape=\] \[{shape}\]"
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            concrete(mask)(inputs, mask)


def test_xla_also_refuses_them(kind="other keys"):
    """XLA drops assertions."""
    made, inputs, concrete = at_run_time("encoder_block", "attention_mask", jit_compile=True)
    mask = fitting(T)["one axis of queries"]
    np.testing.assert_allclose(
        concrete(mask)(inputs, mask), made(*inputs, attention_mask=mask), **SAME
    )
    mask = wrong(T)[kind]
    with pytest.raises(tf.errors.InvalidArgumentError):
        concrete(mask)(inputs, mask)


def test_a_mask_of_unknown_rank_is_refused():
    made, inputs = make("encoder_block")
    mask = tf.TensorSpec(None, tf.bool)
    with pytest.raises(ValueError, match="`attention_mask` must be boolean, .* shape=None"):
        tf.function(lambda mask: made(*inputs, attention_mask=mask)).get_concrete_function(mask)


def test_in_a_functional_model_of_any_length():
    x = keras.Input((None, D))
    mask = keras.Input((1, None), dtype="bool")
    model = keras.Model([x, mask], EncoderBlock(**BLOCK)(x, mask))
    values, real = normal(B, T, D), real_keys(T)[:, None]
    np.testing.assert_array_equal(model([values, real]), model.layers[-1](values, real))
    for call in (model, lambda inputs: model.predict(inputs, verbose=0)):
        with pytest.raises(
            (ValueError, tf.errors.InvalidArgumentError), match="`attention_mask` must be"
        ):
            call([values, real[:, :, :1]])
    with pytest.raises(ValueError, match=r"`attention_mask` must be .* B, T, S = \[None, 7, 7\]"):
        EncoderBlock(**BLOCK)(keras.Input((7, D)), keras.Input((1, 1), dtype="bool"))


def operations(function):
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for body in graph.library.function for node in body.node_def)]
    return [node.op for node in nodes]


@pytest.mark.slow
def test_the_transformer_needs_no_checks_at_run_time():
    """Its masks come from the masked tokens, so training and exports need no assertions."""
    model = Transformer(small_config())
    tokens = tf.TensorSpec([None, None], tf.int32)
    inputs = {"source": tokens, "target": tokens}
    for function, arguments in (
        (model, inputs),
        (model.hidden_states, inputs),
        (model.attention_weights, inputs),
        (model.encode, tokens),
    ):
        graph = tf.function(function).get_concrete_function(arguments)
        assert "Assert" not in operations(graph), function
    tokens = tf.TensorSpec([None, None], tf.int32)
    by_hand = tf.function(
        lambda tokens: model.encoder(model.source_embedding(tokens), padding_mask(tokens))
    ).get_concrete_function(tokens)
    assert operations(by_hand).count("Assert") == 1, "once, not in every block"


def test_litert_converts_a_layer_with_checks_at_run_time():
    x, tokens = keras.Input((None, D)), keras.Input((None,), dtype="int32")
    model = keras.Model([x, tokens], EncoderBlock(**BLOCK)(x, PaddingMask()(tokens)))
    function = tf.function(lambda x, tokens: model([x, tokens])).get_concrete_function(
        tf.TensorSpec([1, None, D]), tf.TensorSpec([1, None], tf.int32)
    )
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], tf.Module())
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    assert converter.convert()
