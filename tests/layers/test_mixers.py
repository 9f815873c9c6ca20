"""Mixers with a state against loops in float64: masks, single steps, 16 bits, blocks, gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from marks import slow
from mixer_rows import MIXERS, directions, mixer_of, model_options
from support import B, D, F, T, normal, random_mask, randomise, small_config, to_numpy, weights_of

from keras_transformer import DecoderBlock, Encoder, EncoderBlock, Transformer
from keras_transformer.config import StackConfig
from keras_transformer.layers import GRU, LSTM, DilatedConvolution, GatedConvolution, Mixing
from keras_transformer.mixers import Mixer
from keras_transformer.recurrence import recurrence

SAME = {"rtol": 0, "atol": 1e-5}
each_mixer = pytest.mark.parametrize("kind", MIXERS)
each_direction = pytest.mark.parametrize(
    ("kind", "causal"), [(kind, causal) for kind in MIXERS for causal in directions(kind)]
)
each_recurrent_network = pytest.mark.parametrize("kind", ["gru", "lstm"])


def built(kind, causal, **options):
    layer = Mixing(mixer_of(kind), causal, **options)
    layer.build((None, None, D))
    return randomise(layer)


def padded(begin, end):
    """Returns positions among padding, and their mask `[B, T]`, which differs by sentence."""
    x, real = normal(B, begin + T + end, D), np.zeros((B, begin + T + end), bool)
    for row in range(B):
        real[row, begin : begin + T - row] = True
    return x, real


@each_direction
def test_outputs_follow_the_formula(kind, causal):
    layer = built(kind, causal)
    for begin, end in ((0, 0), (0, 3), (2, 3)):
        x, real = padded(begin, end)
        expected = MIXERS[kind].reference(weights_of(layer), x, real, causal)
        for mask in ({"attention_mask": real[:, None]}, {"mask": real}):
            np.testing.assert_allclose(to_numpy(layer(x, **mask))[real], expected[real], **SAME)
    everyone = np.ones((B, T), bool)
    expected = MIXERS[kind].reference(weights_of(layer), x[:, :T], everyone, causal)
    np.testing.assert_allclose(layer(x[:, :T]), expected, **SAME)


@each_direction
def test_padding_at_either_end_changes_nothing(kind, causal):
    """In two blocks, so that what the first one makes of padding is padding for the second."""
    stack, (x, real) = Encoder(2, d_ff=F, causal=causal, mixer=mixer_of(kind)), padded(3, 4)
    stack.build(x.shape)
    randomise(stack)
    out = to_numpy(stack(x, mask=real))
    for row in range(B):
        alone = stack(x[row : row + 1, real[row]])
        np.testing.assert_allclose(out[row, real[row]], alone[0], **SAME)


@each_direction
def test_padding_anywhere_follows_the_formula(kind, causal):
    """Masks in all forms; what padding contains is without effect."""
    layer, x, real = built(kind, causal), normal(B, T, D), random_mask(B, T)
    expected = MIXERS[kind].reference(weights_of(layer), x, real, causal)
    changed = np.where(real[..., None], x, 7.0)
    row = [real[0], np.ones(T, bool)]
    attached = tf.constant(x)
    attached._keras_mask = tf.constant(real)
    for out in (
        layer(changed, attention_mask=real[:, None]),
        layer(changed, mask=real),
        layer(x, attention_mask=np.array(row)[:, None], mask=np.array([row[1], real[1]])),
        layer(attached),
    ):
        np.testing.assert_allclose(to_numpy(out)[real], expected[real], **SAME)
    shared = layer(x, attention_mask=real[:1, None])
    both = np.stack([real[0]] * B)
    np.testing.assert_allclose(shared, layer(x, mask=both), **SAME)


@each_direction
def test_later_positions_change_nothing_in_a_causal_layer_alone(kind, causal):
    x = normal(B, T, D)
    longer = np.concatenate([x, normal(B, 5, D, seed=1)], axis=1)
    layer = built(kind, causal)
    change = np.abs(to_numpy(layer(longer)[:, :T]) - to_numpy(layer(x))).max()
    assert change < 1e-5 if causal else change > 1e-2


@each_mixer
def test_a_step_at_a_time_equals_the_call(kind, policy):
    layer, x = built(kind, True, dtype=policy), normal(B * 3, T, D)
    expected = to_numpy(layer(x)).reshape(B, 3, T, D)
    cache = layer.empty_cache(B, T, width=3)
    for t in range(T):
        position = ops.cast(ops.reshape(x[:, t], (B, 3, D)), layer.compute_dtype)
        out, cache = layer.step(position, cache, t)
        assert out.dtype == layer.compute_dtype
        assert {tensor.dtype for tensor in cache} == {tf.float32}
        atol = 1e-5 if layer.compute_dtype == "float32" else 2e-2  # a few ulps of a bfloat16
        np.testing.assert_allclose(to_numpy(out), expected[:, :, t], rtol=0, atol=atol)
    assert layer.extended_cache(cache, 5, 3) is cache


@each_recurrent_network
def test_a_layer_of_keras_with_the_same_weights(kind):
    """The forward half of a causal layer; weights are in the same order."""
    layer, x = built(kind, True), normal(B, T, D)
    theirs = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[kind](D, return_sequences=True)
    theirs.build((None, None, D))
    weights = weights_of(layer)
    bias = weights["forward_bias"]
    if kind == "gru":
        bias = np.stack([weights["forward_input/bias"], bias])
    theirs.set_weights([weights["forward_input/kernel"], weights["forward_recurrent_kernel"], bias])
    np.testing.assert_allclose(layer(x), theirs(x), **SAME)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("mixer", [GRU(), LSTM()])
def test_the_gradient_is_that_of_a_loop(mixer, reverse):
    """The loop is differentiated by TensorFlow."""
    units, size = 3, 3 * mixer.gates
    x, kernel, bias = (
        tf.constant(normal(*shape, seed=n), "float64")
        for n, shape in enumerate([(7, 2, size), (units, size), (size,)])
    )
    real = tf.constant(np.random.default_rng(0).random((7, 2, 1)) < 0.7)
    upstream = tf.constant(normal(7, 2, units, seed=5), "float64")

    def loop(x, kernel, bias):
        states, outputs = (tf.zeros((2, units), "float64"),) * mixer.count, [None] * 7
        for t in reversed(range(7)) if reverse else range(7):
            after, _ = mixer.update(x[t], states[0] @ kernel + bias, states)
            states = tuple(tf.where(real[t], *pair) for pair in zip(after, states, strict=True))
            outputs[t] = states[0]
        return tf.stack(outputs)

    results = []
    for function in (loop, lambda *given: recurrence(mixer, *given, real, reverse)):
        with tf.GradientTape() as tape:
            tape.watch((x, kernel, bias))
            out = function(x, kernel, bias)
        results.append([out, *tape.gradient(out, (x, kernel, bias), upstream)])
    for value, expected in zip(*results, strict=True):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12)


@each_mixer
def test_an_encoder_and_a_decoder_with_the_mixer(kind):
    config = small_config(**model_options(kind))
    model = Transformer(config)
    stacks = (model.encoder, model.decoder)[2 - len(directions(kind)) :]
    assert [stack.blocks[0].history().mixer.kind for stack in stacks] == [kind] * len(stacks)
    assert [stack.blocks[0].history().causal for stack in stacks] == [*reversed(directions(kind))]
    again = type(config).from_dict(config.to_dict())
    assert again == config and type(config)(**config.to_flat()) == config


@each_recurrent_network
def test_one_half_of_the_features_for_each_direction(kind):
    layer = built(kind, False)
    units = {name: array.shape[0] for name, array in weights_of(layer).items() if "recurr" in name}
    assert units == {"forward_recurrent_kernel": D - D // 2, "backward_recurrent_kernel": D // 2}


@pytest.mark.parametrize("jit", [False, slow(True)])
@each_direction
def test_in_a_graph_of_any_length(kind, causal, jit):
    layer = built(kind, causal)
    spec = [tf.TensorSpec([None, None, D]), tf.TensorSpec([None, None], "bool")]
    graph = tf.function(lambda x, real: layer(x, mask=real), input_signature=spec, jit_compile=jit)
    for length in (0, 1, T):
        x, real = normal(B, length, D), np.ones((B, length), bool)
        np.testing.assert_allclose(graph(x, real), layer(x, mask=real), **SAME)


@each_direction
def test_the_gradient_of_no_positions_is_zero(kind, causal):
    layer = built(kind, causal)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(normal(B, 0, D)))
    gradients = tape.gradient(loss, layer.trainable_weights)
    for weight, gradient in zip(layer.trainable_weights, gradients, strict=True):
        np.testing.assert_array_equal(gradient, np.zeros(weight.shape), err_msg=weight.path)


def test_the_dilation_doubles_from_block_to_block():
    """And starts again; the gradient of one output shows what a stack of three has read."""
    mixer = DilatedConvolution(max_dilation=5)
    assert [mixer.at(number).dilation for number in range(5)] == [1, 2, 4, 1, 2]
    assert DilatedConvolution().at(4).dilation == 16
    for causal, read in ((True, range(3, 18)), (False, range(10, 25))):
        options = {"mixer": {"kind": mixer.kind, "max_dilation": 5}, "norm": "pre"}
        stack = Encoder(3, d_ff=8, causal=causal, **options)
        x = tf.constant(normal(1, 40, D))
        stack.build(x.shape)
        randomise(stack)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = stack(x)[:, 17]
        reached = np.abs(tape.gradient(y, x)).max(axis=(0, 2)) > 0
        assert list(np.flatnonzero(reached)) == [*read]


def test_wrong_options():
    with pytest.raises(ValueError, match=r"`max_dilation` must be at least `dilation`.*=4.*=2"):
        DilatedConvolution(dilation=4, max_dilation=2)
    with pytest.raises(ValueError, match=r"`width` must be at least 2. Received: width=1"):
        GatedConvolution(width=1)
    with pytest.raises(ValueError, match=r"`mixer` must have outputs as wide .*units=5"):
        small_config(mixer={"kind": "gru", "units": 5})
    with pytest.raises(ValueError, match=r"`num_heads` has no effect|encoder.num_heads"):
        small_config(mixer="gru", encoder={"num_heads": 3})


def test_heads_are_left_out_without_attention():
    message = "`{}` must be left out without attention. Received: {}, mixer=GRU"
    for heads in (4, 8):
        with pytest.raises(ValueError, match=message.format("num_heads", f"num_heads={heads}")):
            EncoderBlock(heads, 8, mixer="gru")
    with pytest.raises(ValueError, match=message.format("d_k", "d_k=3")):
        EncoderBlock(d_ff=8, d_k=3, mixer="gru")
    with pytest.raises(ValueError, match=r"`use_bias` must be left out .*use_bias=True"):
        config = StackConfig.from_flat(mixer="gru", attention_bias=True)
        EncoderBlock.from_stack(config)
    for block in (EncoderBlock(d_ff=8, mixer="gru"), Encoder(2, d_ff=8, mixer="gru")):
        assert block.config.mixer == GRU()
        again = type(block).from_config(block.get_config())
        assert again.config == block.config and "d_k" not in block.get_config()
    decoder = DecoderBlock(d_ff=8, mixer="gru", cross_attention={"num_heads": 2})
    assert decoder.config.block.memory_attention.num_heads == 2
    for make, role in (
        (lambda: EncoderBlock(d_ff=8), "mixer"),
        (lambda: EncoderBlock(d_ff=8, mixer={"window": 2}), "mixer"),
        (lambda: DecoderBlock(d_ff=8, mixer="gru"), "cross_attention"),
        (lambda: DecoderBlock(d_ff=8, mixer="gru", cross_attention={"d_k": 2}), "cross_attention"),
    ):
        with pytest.raises(TypeError, match=f"`num_heads` must .* an option of `{role}`. .*=None"):
            make()
    with pytest.raises(TypeError, match="`d_ff` must be an integer. Received: d_ff=None"):
        EncoderBlock(mixer="gru")
    with pytest.raises(TypeError, match="^`dff` is not an argument: did you mean `d_ff`?"):
        DecoderBlock(num_heads=2, dff=8)


@pytest.mark.parametrize("kind", MIXERS)
@pytest.mark.parametrize("is_default", [False, True], ids=["own", "by steps"])
def test_reading_gives_the_outputs_and_the_state_of_steps(kind, is_default):
    layer, x, count = built(kind, True), normal(B, T, D), 4
    state = layer.empty_cache(B, T)
    for t in range(count):
        _, state = layer.step(ops.expand_dims(x[:, t], 1), state, t)
    read = Mixer.read if is_default else type(layer.mixer).read
    real = ops.reshape(ops.arange(T) < count, (1, -1, 1))
    outputs, found = read(layer.mixer, layer, ops.convert_to_tensor(x), real)
    np.testing.assert_allclose(outputs[:, :count], layer(x)[:, :count], **SAME)
    for one, other in zip(found, state, strict=True):
        np.testing.assert_allclose(one, other, **SAME)
    assert not is_default or ops.shape(outputs) == (B, T, D)
    none_read = layer.recalled_cache(state, layer.read(x, 0)[1], True, 1)
    assert not any(np.any(tensor) for tensor in none_read)
    outputs, found = read(layer.mixer, layer, ops.convert_to_tensor(x[:, :0]))
    assert ops.shape(outputs) == (B, 0, D)
    for one, first in zip(found, layer.empty_cache(B, T), strict=True):
        np.testing.assert_array_equal(one, first, strict=True)
