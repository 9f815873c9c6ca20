"""`keras.RematScope`: gradients as without it, from activations that are computed again."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from marks import long
from mixer_rows import MIXERS, mixer_of
from support import B, D, F, H, S, T, normal, randomise, small_config

from keras_transformer import DecoderBlock, Encoder, EncoderBlock, Transformer
from keras_transformer.layers import FrameEmbedding

OPTIONS = {"num_heads": 2, "d_ff": F, "dropout": 0.3, "activation": "gelu"}


def block_with(kind):
    """A causal block with a mixer in place of self-attention."""
    options = {"mixer": mixer_of(kind), "d_ff": F, "dropout": 0.3}
    return EncoderBlock(causal=True, **options, name="block")


BLOCKS = {
    "encoder": lambda: EncoderBlock(**OPTIONS, name="block"),
    "decoder": lambda: DecoderBlock(**OPTIONS, name="block"),
    **{kind: functools.partial(block_with, kind) for kind in MIXERS},
}
MODES = {
    "full": {},
    "list_of_layers": {"layer_names": ["block"]},
    "larger_than": {"output_size_threshold": 0},
    "activations": {},
}


def arguments(kind):
    """Tensors of a call, and its other arguments."""
    allowed = np.arange(T) < np.array([[T], [T - 4]])  # [B, T]
    if kind != "decoder":
        return {"x": tf.constant(normal(B, T, D))}, {"mask": tf.constant(allowed)}
    memory_allowed = tf.constant(np.arange(S) < np.array([[S - 3], [S]]))
    return (
        {"x": tf.constant(normal(B, T, D)), "memory": tf.constant(normal(B, S, D, seed=1))},
        {"mask": tf.constant(allowed), "memory_mask": memory_allowed},
    )


def made(make, tensors, options, **scope):
    """A layer made and built in a scope, with the same weights and the same random numbers."""
    keras.utils.set_random_seed(0)
    with keras.RematScope(mode=scope.pop("mode", None), **scope):
        layer = make()
        layer(**tensors, **options)
    return randomise(layer)


def gradients(layer, tensors, options, graph):
    def compute(tensors):
        variables = [variable.value for variable in layer.trainable_variables]
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            y = layer(**tensors, **options, training=True)
            loss = tf.reduce_sum(tf.sin(tf.cast(y, tf.float32)))
        return y, tape.gradient(loss, [*tensors.values(), *variables])

    return (tf.function(compute) if graph else compute)(tensors)


@pytest.mark.parametrize(
    ("kind", "mode", "graph"),
    [
        long("encoder", "larger_than", True),
        ("decoder", "full", False),
        long("decoder", "full", True),
        long("decoder", "list_of_layers", True),
        long("decoder", "activations", True),
        *(long(kind, "full", True) for kind in MIXERS),
    ],
)
def test_gradients_are_the_same(kind, mode, graph):
    """With dropout, whose masks must be the same, in all of two calls."""
    tensors, options = arguments(kind)
    plain = made(BLOCKS[kind], tensors, options)
    again = made(BLOCKS[kind], tensors, options, mode=mode, **MODES[mode])
    for _ in range(2):
        y, expected = gradients(plain, tensors, options, graph)
        output, found = gradients(again, tensors, options, graph)
        np.testing.assert_allclose(output, y, rtol=0, atol=2e-6)
        for ours, theirs in zip(found, expected, strict=True):
            scale = max(1.0, float(tf.reduce_max(tf.abs(theirs))))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6 * scale)
    assert np.abs(found[0]).max() > 0.01


@pytest.mark.parametrize("mode", ["full", pytest.param(None, marks=pytest.mark.slow)])
def test_a_block_is_computed_again_as_a_whole(mode, monkeypatch):
    """One more time for the gradient, and its sublayers not on their own."""
    calls = {"block": 0, "feed_forward": 0}
    tensors, options = arguments("encoder")
    layer = made(BLOCKS["encoder"], tensors, options, mode=mode)

    def counted(owner, name):
        call = owner.call

        def counting(*args, **kwargs):
            calls[name] += 1
            return call(*args, **kwargs)

        monkeypatch.setattr(owner, "call", counting)

    counted(layer, "block")
    counted(layer.feed_forward, "feed_forward")
    gradients(layer, tensors, options, graph=False)
    times = 2 if mode else 1
    assert calls == {"block": times, "feed_forward": times}


@pytest.mark.long
@pytest.mark.slow
def test_attention_weights_are_outputs_too():
    tensors, options = arguments("decoder")
    options["return_attention_scores"] = True
    both = []
    for mode in (None, "full"):
        layer = made(BLOCKS["decoder"], tensors, options, mode=mode)
        with tf.GradientTape() as tape:
            y, weights = layer(**tensors, **options, training=True)
            loss = tf.reduce_sum(tf.sin(y)) + tf.reduce_sum(weights["cross_attention"] ** 2)
        both.append([y, *weights.values(), *tape.gradient(loss, layer.trainable_weights)])
    for ours, theirs in zip(*both, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_a_stack_keeps_the_inputs_of_its_blocks(policy):
    """The gradients of a stack with relative positions, which have weights of their own."""

    def make():
        options = {"num_heads": 2, "d_ff": F, "dropout": 0.2, "attention_position": "relative"}
        return Encoder(num_layers=2, **options, dtype=policy)

    tensors, options = arguments("encoder")
    plain = made(make, tensors, options)
    again = made(make, tensors, options, mode="full")
    y, expected = gradients(plain, tensors, options, graph=True)
    output, found = gradients(again, tensors, options, graph=True)
    tolerance = 2e-6 if policy == "float32" else 2**-7
    np.testing.assert_allclose(tf.cast(output, "float32"), tf.cast(y, "float32"), atol=tolerance)
    for ours, theirs in zip(found, expected, strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(theirs))))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


@pytest.mark.long
@pytest.mark.slow
def test_a_model_trains_as_without_it():
    rng = np.random.default_rng(0)
    source, target = (rng.integers(3, 19, (4, length)).astype("int32") for length in (S, T))
    losses = []
    for mode in (None, "full"):
        keras.utils.set_random_seed(0)
        with keras.RematScope(mode=mode):
            model = Transformer(small_config(dropout=0.2))
        randomise(model)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.1), loss)
        inputs = {"source": source, "target": target}
        losses.append(model.fit(inputs, target, epochs=3, verbose=0, shuffle=False).history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert losses[0][0] != losses[0][-1]


@pytest.mark.long
@pytest.mark.slow
def test_frames_may_be_embedded_again():
    frames = {"frames": tf.constant(normal(B, S, D))}
    both = []
    for mode in (None, "full", "activations"):
        layer = made(lambda: FrameEmbedding(H * 2, dropout=0.2), frames, {}, mode=mode)
        both.append(gradients(layer, frames, {}, graph=True))
    for output, found in both[1:]:
        np.testing.assert_array_equal(output, both[0][0])
        for ours, theirs in zip(found, both[0][1], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
