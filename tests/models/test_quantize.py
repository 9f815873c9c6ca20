"""`model.quantize`: Keras replaces the kernels of linear layers by integers and scales."""

import gc

import keras
import numpy as np
import pytest
from pipelines import classifier, tokenizer
from support import D, F, H, normal, randomise, sentences, small_config, small_fields, to_numpy

import keras_transformer as kt
from keras_transformer.decoding import SearchOptions, Shortlisted
from keras_transformer.export.errors import ExportError
from keras_transformer.export.parity import in_float32

# Keras names every layer without anything to quantise.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]
SOURCE = sentences([7, 4])
INPUTS = {"source": SOURCE, "target": sentences([5, 3], first=2)}


@pytest.fixture(scope="module")
def untied():
    return small(tie="none", vocab_size=64, output_bias=True)


@pytest.fixture(
    scope="module", params=["none", pytest.param("all", marks=[pytest.mark.slow, pytest.mark.long])]
)
def quantized(request, untied):
    return untied if request.param == "none" else small(tie="all", output_bias=True)


def small(**changes):
    model = randomise(kt.Transformer(small_config(num_decoder_layers=1, **changes)))
    gc.freeze()  # Keras collects garbage for every layer that it quantises, a quarter of a second
    model.quantize("int8")
    gc.unfreeze()
    return model


def test_the_logits_of_a_few_tokens_equal_those_of_all(quantized):
    hidden, tokens = quantized.hidden_states(INPUTS), np.array([3, 17, 5, 11], "int32")
    few = quantized.output_weights.of_tokens(tokens)(hidden)
    np.testing.assert_allclose(few, to_numpy(quantized(INPUTS))[..., tokens], rtol=0, atol=1e-5)


def test_the_output_matrix_has_its_own_scale(quantized):
    """Dense layers round their inputs to 8 bits: a row to 1 / 254 of its largest number."""
    hidden = to_numpy(quantized.hidden_states(INPUTS))
    matrix = to_numpy(quantized.output_matrix)
    logits = to_numpy(quantized(INPUTS)) - to_numpy(quantized.output_bias)
    rounding = np.abs(hidden).max(-1, keepdims=True) / 254 * np.abs(matrix).sum(-1)
    assert np.all(np.abs(hidden @ matrix.T - logits) <= rounding + 1e-4)
    assert np.all(rounding < 0.1 * np.abs(logits).max())


def test_a_shortlist_finds_its_most_probable_candidate(untied):
    source, candidates = np.array([[9, 3]]), [*range(8), 9, 11, 40]  # 3 is the end token
    shortlist = kt.decoding.Shortlist.from_counts([[9, 11, 3], [9, 40, 2]], 64, first=8)
    found = kt.Greedy()(Shortlisted(untied, shortlist), source, SearchOptions(cache_length=5))
    tokens = found.tokens.numpy()[0, 0].tolist()
    tokens = tokens[: tokens.index(3) + 1] if 3 in tokens else tokens
    score, target = 0.0, [untied.config.tokens.bos_id]
    for token in tokens:
        logits = to_numpy(untied({"source": source, "target": np.array([target])}))[0, -1]
        never = [untied.config.tokens.pad_id, untied.config.tokens.bos_id]
        allowed = [word for word in candidates if word not in never]
        assert token == allowed[logits[allowed].argmax()]
        score += logits[token] - np.log(np.exp(logits[candidates]).sum())
        target.append(token)
    assert float(found.scores[0, 0]) == pytest.approx(score, abs=1e-4)
    assert score < -0.1


@pytest.mark.slow
@pytest.mark.long
def test_a_model_is_saved_and_cloned(untied, tmp_path):
    untied.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    clone = keras.models.clone_model(untied)
    clone.set_weights(untied.get_weights())
    for model in (loaded, clone):
        np.testing.assert_array_equal(model(INPUTS), untied(INPUTS))


@pytest.mark.slow
@pytest.mark.long
def test_blocks_in_a_users_model_are_saved(tmp_path):
    inputs = keras.Input((None, D))
    x = kt.EncoderBlock(H, F, d_k=4, d_v=4, name="first")(inputs)
    x = kt.Encoder(1, H, F, d_k=4, d_v=4, name="second")(x)
    model = randomise(keras.Model(inputs, kt.FeedForward(F)(x)))
    values = normal(2, 5, D)
    floating = to_numpy(model(values))
    model.quantize("int8")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    loaded.save(tmp_path / "again.keras")
    for other in (loaded, keras.saving.load_model(tmp_path / "again.keras")):
        np.testing.assert_array_equal(other(values), model(values))
    assert 0 < np.abs(to_numpy(loaded(values)) - floating).max() < 0.1 * np.abs(floating).max()


@pytest.mark.slow
def test_a_language_model_can_be_quantised():
    model = randomise(kt.LanguageModel(_language_config(tie="none")))
    model.quantize("int8")
    hidden, tokens = model.hidden_states(INPUTS["target"]), np.array([3, 17, 5], "int32")
    few = model.output_weights.of_tokens(tokens)(hidden)
    expected = to_numpy(model(INPUTS["target"]))[..., tokens]
    np.testing.assert_allclose(few, expected, rtol=0, atol=1e-5)


def _language_config(**changes):
    fields = small_fields(kt.models.LanguageModelConfig, **changes)
    return kt.models.LanguageModelConfig(**fields)


@pytest.mark.long
@pytest.mark.slow
def test_exports_refuse_it_by_name():
    model = kt.models.TextClassifier(classifier().model.config)
    model.quantize("int8")
    pipeline = kt.pipelines.TextClassificationPipeline(model, tokenizer())
    with pytest.raises(ExportError, match='quantised by `model.quantize`.*`quantize="int8"`'):
        in_float32(pipeline)
