"""Every public layer (a row) in every way that TensorFlow and Keras run a layer (a test)."""

import collections
import inspect
import os
import pathlib
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from conformance.rows import (
    ENDS,
    MASKS,
    MODELS,
    PER_STEP,
    ROWS,
    WITH_MIXER,
    WITH_TARGET,
    call,
    functional_model,
    inputs_of,
    is_layer,
    random_model,
)
from marks import slow
from mixer_rows import MIXERS
from support import D, randomise, small_config, to_numpy

import keras_transformer as kt
from keras_transformer.layers.blocks.block import Block
from keras_transformer.layers.blocks.stack import Stack
from keras_transformer.layers.masks import TokenMask

# Layers that make or attach masks; they compute no numbers.
WITHOUT_NUMBERS = (keras.layers.InputLayer, kt.layers.PaddingMask, kt.layers.FrameMask, TokenMask)

SAME = {"rtol": 0, "atol": 1e-5}
TESTS = pathlib.Path(__file__).resolve().parent.parent

# Keras converts variables to arrays in this way when it saves them.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

each_row = pytest.mark.parametrize("name", ROWS)
# One row of each kind: layers of one class differ in their numbers, which tests/layers compares,
# but are saved, copied and named alike. A class without a fast row here has a slow one.
FAST = (
    "MultiHeadSelfAttention_relative",
    "FeedForward",
    "EncoderBlock_alibi",
    "DecoderBlock_t5",
    "EncoderBlock_llama",
    "Encoder",
    "Transformer_output_bias",
    "TextEmbedder",
    "SpanPredictor",
    "ImageClassifier",
    "SeriesEmbedding",
    "SeriesRegressor_gru_attention",
)
OTHERS = {name.partition("_")[0] for name in ROWS} - {name.partition("_")[0] for name in FAST}
each_of_some = pytest.mark.parametrize("name", [*FAST, *map(slow, sorted(OTHERS))])
# Of the models that are made of the layers above, slow ones show that they compute together.
each_computing_row = pytest.mark.parametrize(
    "name",
    [
        "MultiHeadSelfAttention_relative",
        "FeedForward",
        "EncoderBlock_alibi",
        "DecoderBlock_t5",
        "EncoderBlock_llama",
        "Encoder",
        "PatchEmbedding_grid",
        "SnowAccount",
        slow("LanguageModel"),
        slow("TextEmbedder"),
        slow("MaskedLanguageModel"),
        slow("TokenClassifier_transform"),
        slow("SpeechTransformer"),
        slow("SeriesRegressor_gru_attention"),
    ],
)


def test_every_public_layer_is_a_row():
    public = {
        name: getattr(space, name) for space in (kt.layers, kt.models) for name in space.__all__
    }
    layers = {name for name, value in public.items() if is_layer(value)}
    # Masks have no weights and a line of code; test_masks.py and others test the rest of them.
    assert layers - MASKS.keys() == {name.partition("_")[0] for name in ROWS}


class Models(dict):
    """A model per row, with its eager outputs, made when a test first names the row."""

    def __missing__(self, name):
        policy = keras.config.dtype_policy()
        keras.config.set_dtype_policy("float32")
        model = random_model(name)
        self[name] = model, to_numpy(model(inputs_of(name)))
        keras.config.set_dtype_policy(policy)
        return self[name]


@pytest.fixture(scope="module")
def models():
    return Models()


@pytest.fixture(scope="module")
def fresh_process(models, tmp_path_factory):
    """Saves every row here, then loads and replicates every row in one other process."""
    folder = tmp_path_factory.mktemp("conformance")
    for name in ROWS:
        models[name][0].save(folder / f"{name}.keras")
    finished = subprocess.run(
        [sys.executable, TESTS / "conformance" / "fresh_process.py", folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *import_path()])},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    return folder


def import_path():
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


@pytest.mark.parametrize(
    "name",
    [
        "Mixing",
        "EncoderBlock_alibi",
        "DecoderBlock_additive",
        "Encoder",
        "LanguageModel",
        "SpanPredictor",
        "FrameEmbedding",
        "SeriesRegressor_gru_attention",
    ],
)
def test_outputs_depend_on_every_argument(models, name):
    """Otherwise the equalities below would show nothing about masks and memories."""
    model, expected = models[name]
    assert np.all(np.isfinite(expected))
    for argument, value in inputs_of(name).items():
        changed = {**inputs_of(name), argument: np.flip(value, axis=1)}
        if value.dtype == bool:
            changed[argument] = np.ones_like(value)
        assert np.abs(to_numpy(model(changed)) - expected).max() > 1e-2, argument


@each_of_some
def test_a_symbolic_output_matches_the_computed_one(models, name):
    """Layers declare it without being traced: a wrong declaration would mislead the next layer."""
    model, _ = models[name]
    out = model(inputs_of(name))
    assert model.output.dtype == out.dtype
    assert name in PER_STEP or model.output.shape[-1] == out.shape[-1]
    for symbolic, real in zip(model.output.shape, out.shape, strict=True):
        assert symbolic in (None, real)


@each_of_some
def test_config_round_trip(name):
    layer = ROWS[name].make()
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    model = randomise(functional_model(name, layer))
    other = functional_model(name, again)
    other.set_weights(model.get_weights())
    np.testing.assert_array_equal(model(inputs_of(name)), other(inputs_of(name)))


@each_row
def test_config_holds_every_argument_of_the_constructor(name):
    """An argument that is missing from the config is silently lost in a saved file."""
    layer = ROWS[name].make()
    config = layer.get_config()
    for parent in type(layer).__mro__:
        if not parent.__module__.startswith("keras_transformer"):
            continue
        for parameter in inspect.signature(parent.__init__).parameters.values():
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name != "self":
                # The options of a configuration are also arguments of `EncoderBlock` and so on.
                options = {parameter.name}
                if parent in (Block, Stack):  # an SSRU has no window
                    options = {*layer.options} & layer.config.to_flat().keys()
                assert set(options) <= set(config), parameter.name


@pytest.mark.long
@pytest.mark.slow
@each_row
def test_keras_file_in_a_fresh_process(models, fresh_process, name):
    with np.load(fresh_process / "loaded.npz") as loaded:
        np.testing.assert_allclose(loaded[name], models[name][1], **SAME)


@each_of_some
def test_weights_file(models, name, tmp_path):
    model, expected = models[name]
    model.save_weights(tmp_path / "saved.weights.h5")
    other = functional_model(name)
    other.load_weights(tmp_path / "saved.weights.h5")
    np.testing.assert_allclose(other(inputs_of(name)), expected, **SAME)


@each_of_some
def test_clone_model(models, name):
    model, expected = models[name]
    clone = keras.models.clone_model(model)
    assert [w.path for w in clone.weights] == [w.path for w in model.weights]
    assert not {id(w) for w in clone.weights} & {id(w) for w in model.weights}
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(inputs_of(name)), expected, **SAME)


@pytest.mark.parametrize(
    "name", ["EncoderBlock_alibi", "Encoder", "SpanPredictor", "SeriesRegressor_gru_attention"]
)
def test_tf_function_of_any_length(models, name):
    model, expected = models[name]
    signature = {
        key: tf.TensorSpec(
            [None, *(None if n in (11, 13) else n for n in value.shape[1:])], value.dtype
        )
        for key, value in inputs_of(name).items()
    }
    function = tf.function(model, input_signature=[signature])
    np.testing.assert_allclose(function(inputs_of(name)), expected, **SAME)
    one = {key: value[:1] for key, value in inputs_of(name).items()}
    np.testing.assert_allclose(function(one), expected[:1], **SAME)


@pytest.mark.parametrize(
    "name",
    ["SnowAccount", *map(slow, WITH_MIXER), slow("SeriesRegressor_gru_attention")],
)
def test_xla(models, name):
    model, expected = models[name]
    function = tf.function(model, jit_compile=True)
    np.testing.assert_allclose(function(inputs_of(name)), expected, **SAME)


# Relative to the largest output: allows a few roundings of 2^-8 and 2^-11.
ROUNDING = {"mixed_bfloat16": 0.03, "mixed_float16": 0.004}


@pytest.mark.parametrize(
    ("name", "policy_name"),
    [
        ("MultiHeadCrossAttention", "mixed_float16"),
        ("MultiHeadSelfAttention_relative", "mixed_bfloat16"),
        ("MultiHeadSelfAttention_disentangled", "mixed_float16"),
        ("FeedForward", "mixed_float16"),
        ("EncoderBlock", "mixed_bfloat16"),
        ("DecoderBlock", "mixed_float16"),
        ("EncoderBlock_relative", "mixed_float16"),
        ("DecoderBlock_t5", "mixed_bfloat16"),
        ("PositionalEmbedding_binary", "mixed_float16"),
        ("DecoderBlock_ssru", "mixed_bfloat16"),
        *((f"Mixing_{kind}_causal", "mixed_bfloat16") for kind in MIXERS),
        ("Mixing_lstm", "mixed_float16"),
        ("Encoder_deberta", "mixed_bfloat16"),
        ("Decoder_t5", "mixed_float16"),
        ("PatchEmbedding_grid", "mixed_float16"),
        ("SeriesEmbedding", "mixed_bfloat16"),
        ("SnowAccount", "mixed_float16"),
        *(slow(name, "mixed_float16") for name in sorted(MODELS - {"Transformer"})),
    ],
)
def test_mixed_precision(models, name, policy_name):
    """Every sublayer computes in 16 bits, weights stay float32, and outputs are nearly the same."""
    model, expected = models[name]
    keras.config.set_dtype_policy(policy_name)
    mixed = functional_model(name)
    mixed.set_weights(model.get_weights())
    out = mixed(inputs_of(name))
    compute_dtype = keras.config.dtype_policy().compute_dtype
    assert out.dtype == mixed.output.dtype == ("float32" if name in MODELS else compute_dtype)
    assert all(weight.dtype == "float32" for weight in mixed.weights)
    for layer in mixed._flatten_layers(include_self=False):
        if not isinstance(layer, WITHOUT_NUMBERS) and layer.name not in ENDS:
            assert layer.compute_dtype == compute_dtype, layer.path
    error = np.abs(to_numpy(out) - expected).max() / np.abs(expected).max()
    assert 0 < error < ROUNDING[policy_name]


@pytest.mark.half_precision
@each_computing_row
def test_dtype_of_one_layer(models, name):
    """`dtype=` in the constructor has the effect of the global policy on every sublayer."""
    config = ROWS[name].make().get_config()
    layer = type(ROWS[name].make()).from_config({**config, "dtype": "mixed_bfloat16"})
    one = functional_model(name, layer)
    keras.config.set_dtype_policy("mixed_bfloat16")
    every = functional_model(name)
    for model in (one, every):
        model.set_weights(models[name][0].get_weights())
    np.testing.assert_array_equal(to_numpy(one(inputs_of(name))), to_numpy(every(inputs_of(name))))


@pytest.mark.half_precision
@each_computing_row
def test_mixed_float16_gradients_are_finite(name):
    keras.config.set_dtype_policy("mixed_float16")
    model = random_model(name)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.cast(model(inputs_of(name), training=True), "float32") ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert np.all(np.isfinite(to_numpy(tf.convert_to_tensor(gradient)))), variable.path


@pytest.mark.long
@pytest.mark.slow
@each_row
def test_two_replicas(models, fresh_process, name):
    """Outputs, loss and every weight after one training step agree on two devices and on one."""
    model, expected = models[name]
    with np.load(fresh_process / "replicas.npz") as arrays:
        keys = [key for key in arrays if key.startswith(f"{name}/one/")]
        assert len(keys) == 2 + len(model.weights)
        for key in keys:
            two = arrays[key.replace("/one/", "/two/")]
            np.testing.assert_allclose(two, arrays[key], **SAME, err_msg=key)
        np.testing.assert_allclose(arrays[f"{name}/two/outputs"], expected, **SAME)
        for n, weight in enumerate(model.weights):
            # The bias of the keys adds the same number to all scores of a query, which softmax
            # ignores.
            moved = np.abs(arrays[f"{name}/two/weight_{n}"] - weight.numpy()).max()
            assert moved > 1e-5 or weight.path.endswith("key/bias"), weight.path


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["DecoderBlock_t5", "TextEmbedder", "SeriesRegressor_gru_attention"]
)
def test_saved_model(models, name, tmp_path):
    """Called in Python, and as a C program would load it: with the loader of version 1."""
    model, expected = models[name]
    model.export(tmp_path / "saved", verbose=False)
    tensors = {key: tf.constant(value) for key, value in inputs_of(name).items()}
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_allclose(loaded.serve(tensors), expected, **SAME)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved"))
        signature = graph.signature_def["serving_default"]
        (output,) = signature.outputs.values()
        feed = {signature.inputs[key].name: value for key, value in inputs_of(name).items()}
        np.testing.assert_allclose(session.run(output.name, feed), expected, **SAME)


@each_of_some
def test_summary_names_every_sublayer(models, name):
    """Each sublayer has a line with the name from its constructor, not a generated one."""
    model, _ = models[name]
    lines = []
    model.summary(print_fn=lines.append, expand_nested=True, line_length=160)
    table = "\n".join(lines)
    printed = collections.Counter(re.findall(r"^│\s+(?:└ )?(\w+)", table, re.MULTILINE))
    layers = [
        layer
        for layer in model._flatten_layers(include_self=False)
        if not isinstance(layer, keras.layers.GRUCell)  # part of Keras's GRU
    ]
    assert printed == collections.Counter(layer.name for layer in layers)
    given = [layer.name for layer in layers if layer not in model.layers]
    assert not [
        n
        for n in given
        if re.search(r"_\d+$", n) and not re.match(r"(block|conv|gru|recurrent)_\d$", n)
    ]


@pytest.mark.parametrize("name", [name for name in FAST if not name.startswith(WITH_TARGET)])
def test_a_layer_called_on_arrays_is_the_layer_in_a_model(models, name):
    """It is built on its first call, without a `keras.Input`."""
    layer = ROWS[name].make()
    call(name, layer, inputs_of(name))
    layer.set_weights(models[name][0].get_weights())
    np.testing.assert_allclose(call(name, layer, inputs_of(name)), models[name][1], **SAME)


@pytest.mark.long
@pytest.mark.slow
def test_in_a_users_sequential_model():
    """A text classifier of our layers among Keras's is trained, saved, loaded and called."""
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            kt.PositionalEmbedding(19, D),
            kt.MultiHeadSelfAttention(2),
            kt.EncoderBlock(num_heads=11, d_ff=17, dropout=0.1),
            kt.Encoder(1, num_heads=2, d_ff=17, dropout=0.1),
            kt.FeedForward(17),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
    )
    tokens = inputs_of("PositionalEmbedding")["inputs"]
    x = tokens
    for layer in model.layers:
        x = layer(x)
    np.testing.assert_allclose(model(tokens), x, **SAME)
    # The task is to detect whether a sequence contains token 7, which no single position shows.
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 19, (256, 13))
    labels = (tokens == 7).any(axis=1).astype("float32")
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    model.fit(tokens, labels, epochs=12, batch_size=32, verbose=0)
    assert model.evaluate(tokens, labels, verbose=0)[1] > 0.9


def test_in_a_users_functional_model(tmp_path):
    """Keras's embedding and norms, a mask of the user's own, and our attention with its weights."""
    source = keras.Input((None,), dtype="int32", name="source")
    queries = keras.Input((None, D), name="queries")
    memory = keras.layers.Embedding(19, D, name="words")(source)
    allowed = kt.layers.PaddingMask(pad_id=5, name="mask")(source)
    attention = kt.layers.MultiHeadCrossAttention(2, name="look")
    x, weights = attention(queries, memory, attention_mask=allowed, return_attention_scores=True)
    x = kt.DecoderBlock(num_heads=2, d_ff=17, name="block")(
        x, memory, memory_attention_mask=allowed
    )
    outputs = {"x": keras.layers.LayerNormalization(name="end")(x), "weights": weights}
    model = randomise(keras.Model({"source": source, "queries": queries}, outputs))
    inputs = {"source": np.array([[4, 5, 7, 9]]), "queries": inputs_of("FeedForward")["x"][:1]}
    before = model(inputs)
    weights = to_numpy(before["weights"])
    assert weights.shape == (1, 2, 11, 4)
    assert np.all(weights[..., 1] == 0)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    shorter = model({**inputs, "source": np.array([[4, 7, 9]])})
    np.testing.assert_allclose(before["x"], shorter["x"], **SAME)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(inputs)["x"], before["x"], **SAME)


def test_a_frozen_encoder():
    """Transfer learning: `trainable = False` reaches every weight of every sublayer."""
    model = kt.Transformer(small_config())
    model.encoder.trainable = False
    paths = [weight.path for weight in model.trainable_variables]
    assert paths
    assert not [path for path in paths if path.startswith("encoder/")]
