"""Models with other scores, relative positions or an output bias, in every export."""

import dataclasses

import mixer_rows
import numpy as np
import pytest
import tensorflow as tf
from exporting import asked
from marks import long, slow_except
from searching import by_beam, by_greedy
from support import randomise, small_config

import keras_transformer
from keras_transformer import Beam, Greedy, Transformer, Translator
from keras_transformer.export import (
    LiteRTOptions,
    OnnxOptions,
    SavedModelOptions,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_transformer.export.litert.runtime import LiteRTTranslator

# Nine hypotheses at a time; the cache has a separate part for the first eight positions.
LIMIT, BATCH, BEAM = 12, 3, 3
# Settings with which the source does not limit the length of outputs.
ANY_LENGTH = {Greedy(): {}, Beam(BEAM): {"extra_length": None}}
KINDS = {
    "alibi": {"position": "alibi", "tie": "none"},
    "additive": {"score": "additive", "position": "alibi", "tie": "none"},
    "relative": {"position": {"kind": "relative", "distance": 4}, "tie": "none"},
    "t5": {"position": {"kind": "t5", "distance": 9, "buckets": 8}, "score": "dot_product"},
    "binary": {"position": "binary", "score": "general"},
    **mixer_rows.models(),
    "ssru, output bias": {"decoder": "ssru", "output_bias": True, "position": "learned"},
    "bahdanau": {
        **{"mixer": "gru", "feed_forward": "none", "normalization": "none", "position": "none"},
        **{"cross_attention": {"num_heads": 1, "score": "additive"}, "norm": "post"},
    },
    "bytenet": {
        **{"mixer": "dilated_convolution", "cross_attention": "same_position"},
        **{"feed_forward": "none", "normalization": "none", "norm": "post"},
    },
    "alternating": {
        **{"num_heads": 2, "d_k": 6, "num_layers": 2, "position": "rotary"},
        "window": {"kind": "alternating", "size": 2, "global_every": 2},
    },
    "output bias": {"output_bias": True},
    "output bias, untied": {"output_bias": True, "tie": "none"},
    "llama, local": {
        **{"num_heads": 4, "num_key_value_heads": 2, "d_k": 6, "normalization": "rms"},
        **{
            "position": {"kind": "rotary", "base": 500.0},
            "window": 4,
        },
        **{"feed_forward": {"kind": "gated", "bias": False}, "activation": "silu"},
    },
    "shared t5": {
        **{"position": {"kind": "t5", "shared": True}, "score": "dot_product"},
        **{"normalization": {"kind": "layer", "offset": False}},
        **{"feed_forward": "gated", "activation": "gelu_tanh"},
    },
}
SHORT_FILES = ("ssru, output bias", "gru")
COMPILED = SavedModelOptions(jit=True, batch_sizes=(4,), lengths=(LIMIT,), check_seconds=1)


@pytest.fixture(scope="module")
def translators(tokenizer):
    """A function that takes a kind and returns a translator with random weights and biases."""
    made = {}

    def of(kind):
        if kind not in made:
            options = {"max_length": LIMIT, "norm": "pre", **KINDS[kind]}
            config = small_config(vocab_size=tokenizer.vocab_size, **options)
            model = randomise(Transformer(config))
            if model.output_bias is not None:
                bias = np.random.default_rng(1).normal(size=config.tokens.vocab_size)
                model.output_bias.assign(3 * bias)
            made[kind] = Translator(model, tokenizer)
        return made[kind]

    return of


def sources(translator, sentences):
    rows = translator.source_tokenizer.encode(sentences).to_list()
    ids = [row for row in rows if len(row) <= LIMIT]
    return tf.constant([[*row, *[0] * (LIMIT - len(row))] for row in ids])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *(pytest.param(kind, SavedModelOptions(), id=kind) for kind in KINDS),
        *(
            pytest.param(kind, COMPILED, id=f"compiled-{kind}")
            for kind in (*mixer_rows.MIXERS, "alternating", "bytenet")
        ),
    ],
)
def test_a_saved_model_gives_the_same(kind, options, translators, sentences, tmp_path):
    translator = translators(kind)
    report = export_saved_model(translator, tmp_path / "model", sentences, options)
    loaded = tf.saved_model.load(report["path"])
    source = sources(translator, sentences)
    for name, (tokens, scores) in (
        ("tokens", by_greedy(translator.model, source)),
        ("beam_tokens", by_beam(translator.model, source, 4, 4)),
    ):
        outputs = loaded.signatures[name](source)
        np.testing.assert_array_equal(outputs["tokens"], tokens)
        np.testing.assert_allclose(outputs["score"], scores, rtol=1e-4)
        assert len(np.unique(np.round(scores, 3))) > 25  # they depend on the source


@pytest.mark.slow
@pytest.mark.parametrize("kind", slow_except(KINDS, *SHORT_FILES, mark=long))
@pytest.mark.parametrize("converter", ["tensorflow", long("litert")])
def test_a_litert_file_gives_the_same(kind, converter, translators, sentences, tmp_path):
    if converter == "litert":
        pytest.importorskip("litert_converter")
    translator, path = translators(kind), tmp_path / "x.tflite"
    options = {"lengths": [LIMIT], "batch_sizes": [BATCH], "search": Beam(BEAM)}
    options["converter"] = converter
    report = export_litert(translator, path, sentences, **asked(LiteRTOptions, **options))
    assert report["score_difference"] < 1e-4
    source = sources(translator, sentences)
    rows = [row[row != 0].tolist() for row in source.numpy()]
    model = translator.model
    for search, (tokens, scores) in (
        (None, by_greedy(model, source, LIMIT)),
        (Beam(BEAM), by_beam(model, source, BEAM, max_length=LIMIT)),
    ):
        loaded = LiteRTTranslator(path, search) if search else LiteRTTranslator(path)
        for first in range(0, len(rows) - BATCH, BATCH):
            tokens_of_file, scores_of_file = loaded.decode(rows[first : first + BATCH])
            batch = slice(first, first + BATCH)
            np.testing.assert_array_equal(np.squeeze(tokens_of_file), np.squeeze(tokens[batch]))
            np.testing.assert_allclose(
                np.squeeze(scores_of_file), np.squeeze(scores[batch]), rtol=1e-4
            )


@pytest.mark.slow
@pytest.mark.parametrize("kind", slow_except(sorted(KINDS), *SHORT_FILES, mark=long))
@pytest.mark.parametrize("search", [Greedy(), Beam(BEAM)], ids=["greedy", "beam"])
def test_an_onnx_file_gives_the_same(kind, search, translators, sentences, tmp_path):
    pytest.importorskip("onnxruntime")
    translator, path = translators(kind), tmp_path / "x.onnx"
    report = export_onnx(translator, path, sentences, OnnxOptions(search=search))
    assert report["score_difference"] < 1e-4
    source = sources(translator, sentences)
    expected = by_greedy(translator.model, source, LIMIT)
    if search != Greedy():
        expected = by_beam(translator.model, source, BEAM, max_length=LIMIT)
    loaded = keras_transformer.open(path, search=dataclasses.replace(search, **ANY_LENGTH[search]))
    tokens, scores = loaded.decode([row[row != 0].tolist() for row in source.numpy()])
    np.testing.assert_array_equal(np.squeeze(tokens), np.squeeze(expected[0]))
    np.testing.assert_allclose(np.squeeze(scores), np.squeeze(expected[1]), rtol=1e-4)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", [long("relative"), *mixer_rows.MIXERS])
def test_an_int8_file_scores_as_the_model(kind, translators, sentences, tmp_path):
    """Measured for the file's own tokens: 0.0036 to 0.0063 nats per token."""
    options = LiteRTOptions("int8", lengths=[LIMIT], max_score_loss=1.0)
    report = export_litert(translators(kind), tmp_path / "x.tflite", sentences, options)
    assert report["score_error"] < 0.02


@pytest.fixture(scope="module")
def light_with_bias(light):
    """The translator of phrases with an output bias that is larger than a rounding error."""
    config = dataclasses.replace(light.model.config, output_bias=True)
    model = Transformer(config)
    weights = {weight.path: weight.numpy() for weight in light.model.weights}
    bias = np.random.default_rng(1).uniform(-2, 2, config.tokens.vocab_size)
    for weight in model.weights:
        weight.assign(bias if weight is model.output_bias else weights[weight.path])
    return Translator(model, light.source_tokenizer)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["float16", "int8", "int8_static"])
def test_an_output_bias_in_quantised_files(
    quantize, light, light_with_bias, sentences, calibration, tmp_path
):
    """Its scores are close to the model with the bias, and far from the one without."""
    options = {"calibration": calibration} if quantize == "int8_static" else {}
    path = tmp_path / "x.tflite"
    export_litert(
        light_with_bias, path, sentences, **asked(LiteRTOptions, quantize, lengths=[16], **options)
    )
    exported, with_bias, without = (
        np.array([translation.score for translation in way.answer_batch(sentences)])
        for way in (LiteRTTranslator(path), light_with_bias, light)
    )
    error, effect = (np.abs(with_bias - scores).mean() for scores in (exported, without))
    assert effect > 5 * error and effect > 0.1
