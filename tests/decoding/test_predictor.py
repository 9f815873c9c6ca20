"""Searches of other models than ours give the results of loops in plain Python.

The models are a recurrent decoder with a state of fixed size, a decoder without an encoder, and an
ensemble.
"""

import functools

import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import long, slow
from predictors import DecoderOnly, Recurrent, prompts
from searching import by_beam, by_greedy, by_sample
from support import small_config
from uncertain_models import BOS, EOS, PAD, logits_of, sources, talkative

from keras_transformer import Transformer
from keras_transformer.decoding import EncoderDecoder, Ensemble, Predictor, Vocabulary, score

LIMIT = 9
SSRU = {"decoder": "ssru", "decoder_start": "zeros"}
SCORES = {"rtol": 0, "atol": 1e-4}
IDS = {"bos_id": BOS, "eos_id": EOS, "pad_id": PAD}
SCORE = functools.partial(reference.normalized, normalization="gnmt", length_penalty=0.6)


def of_transformers(*models):
    """Returns reference logits of a model or an ensemble, one model after the other in float64."""

    def logits(source, target):
        outputs = [logits_of(model)(source, target) for model in models]
        probabilities = [np.exp(reference.log_probabilities(output)) for output in outputs]
        return np.log(sum(probabilities) / len(models))

    return logits


@functools.cache
def predictor_and_reference(name):
    """Returns a predictor, its inputs, and a function for logits of whole outputs."""
    models = talkative("pre"), talkative("post")
    if name == "encoder-decoder":
        return EncoderDecoder(models[0]), sources(), of_transformers(models[0])
    if name == "ssru":
        model = talkative("pre", **SSRU)
        return EncoderDecoder(model), sources(), of_transformers(model)
    if name == "ensemble":
        models = *models, talkative("pre", **SSRU)
        return Ensemble(models), sources(), of_transformers(*models)
    predictor = Recurrent() if name == "recurrent" else DecoderOnly()
    return predictor, sources() if name == "recurrent" else prompts(), predictor.whole


PREDICTORS = ["encoder-decoder", "ssru", "recurrent", "decoder-only", "ensemble"]
each_predictor = pytest.mark.parametrize("name", PREDICTORS)


@pytest.fixture(autouse=True, scope="module")
def built_outside_of_graphs():
    for name in PREDICTORS:
        predictor_and_reference(name)


@pytest.mark.parametrize(
    "name", ["decoder-only", slow("recurrent"), slow("ensemble"), long("ssru")]
)
def test_greedy_search_equals_a_loop_in_python(name):
    predictor, inputs, logits = predictor_and_reference(name)
    tokens, scores = by_greedy(predictor, inputs, LIMIT)
    expected, expected_scores = reference.greedy(logits, inputs, LIMIT, **IDS)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, **SCORES)
    lengths = np.count_nonzero(expected, axis=1)
    assert len(set(lengths)) > 1 and np.any(expected == EOS), "some end earlier than others"


@pytest.mark.parametrize(
    ("beam_size", "name"),
    [slow(1, "recurrent"), slow(1, "ensemble"), long(4, "ssru"), slow(4, "ensemble")],
)
def test_a_beam_equals_a_loop_in_python(name, beam_size):
    predictor, inputs, logits = predictor_and_reference(name)
    tokens, scores = by_beam(predictor, inputs, beam_size, beam_size, max_length=LIMIT)
    for b, row in enumerate(inputs):
        best = reference.beam(logits, row, beam_size, SCORE, 1, LIMIT, **IDS)[:beam_size]
        expected = np.zeros((len(best), LIMIT))
        for place, (_, words) in enumerate(best):
            expected[place, : len(words)] = words
        np.testing.assert_array_equal(tokens[b, : len(best)], expected)
        np.testing.assert_allclose(scores[b, : len(best)], [total for total, _ in best], **SCORES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ssru", "decoder-only", "ensemble"])
def test_hypotheses_change_their_places_in_these_beams(name, monkeypatch):
    """Otherwise the test above would pass even if the state were not reordered."""
    predictor, inputs, _ = predictor_and_reference(name)
    follow, moved = predictor.follow, []

    def watched(state, parents):
        moved.append(np.any(parents != np.arange(4)))
        return follow(state, parents)

    monkeypatch.setattr(predictor, "follow", watched)
    tokens, _ = by_beam(predictor, inputs, 4, 4, max_length=LIMIT)
    assert np.count_nonzero(moved[1:]) > 2  # the first step only expands the first hypothesis
    monkeypatch.setattr(predictor, "follow", lambda state, parents: state)
    assert np.any(by_beam(predictor, inputs, 4, 4, max_length=LIMIT)[0] != tokens)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["recurrent", "ensemble"])
def test_steps_equal_one_pass_over_the_output(name):
    """The scores of given outputs of any length: one pass equals a step for each token."""
    predictor, inputs, logits = predictor_and_reference(name)
    tokens, scores = by_sample(predictor, inputs, 0.7, seed=(1, 2), max_length=LIMIT)
    gains, sums = score(predictor, inputs, tokens)
    np.testing.assert_allclose(sums, scores, **SCORES)
    shifted = np.insert(tokens[:, :-1], 0, BOS, axis=1)
    of_any_length = tf.function(
        functools.partial(Predictor.logits, predictor, inputs),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )
    by_steps, at_once = of_any_length(shifted), logits(inputs, shifted)
    # An ensemble's logits are normalised, as are those of the loops.
    by_steps, at_once = map(reference.log_probabilities, (by_steps, at_once))
    np.testing.assert_allclose(by_steps[tokens != PAD], at_once[tokens != PAD], **SCORES)
    chosen = np.take_along_axis(at_once, tokens.numpy()[:, :, None], 2)[:, :, 0]
    np.testing.assert_allclose(gains, np.where(tokens == PAD, 0, chosen), **SCORES)


@pytest.mark.long
@pytest.mark.slow
@each_predictor
def test_a_state_that_grows_in_stages_gives_the_same(name):
    predictor, inputs, _ = predictor_and_reference(name)
    for search in (by_greedy, functools.partial(by_beam, size=3, n_best=3)):
        expected = search(predictor, inputs, max_length=LIMIT, cache_stages=())
        outputs = search(predictor, inputs, max_length=LIMIT, cache_stages=(2, 5))
        np.testing.assert_array_equal(outputs[0], expected[0])
        np.testing.assert_allclose(outputs[1], expected[1], **SCORES)


@pytest.mark.long
@pytest.mark.slow
def test_compiled_is_eager(name="ensemble", jit_compile=False):
    predictor, inputs, _ = predictor_and_reference(name)
    for search in (by_greedy, by_sample, functools.partial(by_beam, n_best=2)):
        expected = search(predictor, inputs, max_length=5)
        compiled = tf.function(
            lambda inputs, search=search: search(predictor, inputs, max_length=5),
            jit_compile=jit_compile,
        )
        tokens, scores = compiled(tf.constant(inputs))
        np.testing.assert_array_equal(tokens, expected[0])
        np.testing.assert_allclose(scores, expected[1], **SCORES)


@pytest.mark.slow
def test_a_model_and_its_predictor_give_the_same(name="sample"):
    searches = {"greedy": by_greedy, "beam": by_beam, "sample": by_sample}
    model, source = talkative(), sources()
    expected = searches[name](model, source, max_length=LIMIT, alignment=(1, 0))
    predictor = EncoderDecoder(model, alignment=(1, 0))
    outputs = searches[name](predictor, source, max_length=LIMIT)
    assert list(outputs) == ["tokens", "scores", "alignment"]
    for key, value in expected.items():
        np.testing.assert_array_equal(outputs[key], value)


def test_any_class_with_an_encoder_and_a_decoder_can_be_searched():
    class Wrapped:
        def __init__(self, model):
            self.model = model

        def __getattr__(self, name):
            return getattr(self.model, name)

    tokens, _ = by_greedy(Wrapped(talkative()), sources(), LIMIT)
    np.testing.assert_array_equal(tokens, by_greedy(talkative(), sources(), LIMIT)[0])


@pytest.mark.long
@pytest.mark.slow
def test_an_ensemble_differs_from_each_of_its_models():
    predictor, source, _ = predictor_and_reference("ensemble")
    tokens, _ = by_greedy(predictor, source, LIMIT)
    for model in predictor.members:
        assert np.any(by_greedy(model, source, LIMIT)[0] != tokens)


@pytest.mark.slow
def test_an_ensemble_of_a_model_with_itself_is_the_model(search=by_sample):
    model, source = talkative(), sources()
    aligned = EncoderDecoder(model, alignment=(1, None))
    outputs = search(Ensemble([aligned, aligned]), source, max_length=LIMIT)
    expected = search(model, source, max_length=LIMIT, alignment=(1, None))
    assert list(outputs) == list(expected)
    np.testing.assert_array_equal(outputs["tokens"], expected["tokens"])
    for key in ("scores", "alignment"):
        np.testing.assert_allclose(outputs[key], expected[key], **SCORES)


def test_an_ensemble_returns_attention_weights_if_all_its_models_do():
    model, source = talkative(), sources()
    both = Ensemble([EncoderDecoder(model, alignment=(0, head)) for head in (0, 1)])
    one, other, mean = (
        by_greedy(predictor, source, 1)["alignment"] for predictor in (*both.members, both)
    )
    np.testing.assert_allclose(mean, (one + other) / 2, **SCORES)
    assert isinstance(by_greedy(Ensemble([both, model]), source, 1), tuple)


def test_wrong_models_are_refused():
    with pytest.raises(ValueError, match=r"`models` must not be empty. Received: models=\(\)"):
        Ensemble([])
    with pytest.raises(
        ValueError, match=r"same output vocabulary\. Received: `size` is 19 and 23\."
    ):
        Ensemble([talkative(), Transformer(small_config(vocab_size=23))])
    message = (
        "must be one of LanguageModel, Transformer, or a predictor, such as an Ensemble. .* str"
    )
    with pytest.raises(TypeError, match=message):
        by_greedy("model", sources())


@pytest.mark.parametrize("search", [by_greedy, by_beam, by_sample])
def test_an_alignment_is_requested_when_a_predictor_is_made(search):
    message = r"`alignment` must be None with a predictor, .* Received: alignment=\(0, 0\)"
    with pytest.raises(ValueError, match=message):
        search(EncoderDecoder(talkative()), sources(), alignment=(0, 0))


@pytest.mark.parametrize("search", [by_greedy, by_beam, by_sample])
def test_the_length_of_an_output_is_limited_by_the_predictor(search):
    predictor = Recurrent()
    assert predictor.vocabulary == Vocabulary(19, PAD, BOS, EOS)
    tokens, _ = search(predictor, sources(), cache_stages=())
    assert tokens.shape[-1] == predictor.max_length == 12
    with pytest.raises(ValueError, match="between 1 and 12. Received: cache_length=13"):
        search(predictor, sources(), cache_length=13)
