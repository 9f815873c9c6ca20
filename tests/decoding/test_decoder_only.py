"""Searches of a language model: outputs that continue prompts of any length."""

import functools

import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow
from searching import by_beam, by_greedy, by_sample
from uncertain_models import (
    BOS,
    EOS,
    PAD,
    sources,
    talkative,
    talkative_text,
    text_prompts,
    unpadded,
)

from keras_transformer import Beam
from keras_transformer.decoding import Constraints, Predictor, SearchOptions, score
from keras_transformer.decoding.decoder_only import DecoderOnly
from keras_transformer.decoding.model_predictor import predictor_of

LIMIT = 12
SCORES = {"rtol": 0, "atol": 1e-4}
IDS = {"bos_id": BOS, "eos_id": EOS, "pad_id": PAD}
SCORE = functools.partial(reference.normalized, normalization="gnmt", length_penalty=0.6)
SEARCHES = {
    "greedy": lambda *arguments, **options: [
        value[:, None] for value in by_greedy(*arguments, **options)
    ],
    "beam": functools.partial(by_beam, size=4, n_best=3),
    "sample": lambda *arguments, **options: [
        value[:, None] for value in by_sample(*arguments, seed=(1, 2), **options)
    ],
}
each_search = pytest.mark.parametrize("name", SEARCHES)


@pytest.fixture(autouse=True, scope="module")
def built_outside_of_graphs():
    talkative_text()


@functools.cache
def logits_of(model):
    """Returns the logits of whole texts without a cache; one graph serves all lengths."""
    tokens = tf.TensorSpec([None, None], tf.int32)
    return tf.function(model, input_signature=[tokens], autograph=False)


def words_of(prompt):
    return [token for token in prompt.tolist() if token not in (PAD, EOS)]


def forced(prompts, prefixes):
    """Returns the logits of whole texts; within a prompt only the prompt's token is possible."""
    logits = np.array(logits_of(talkative_text())(prefixes), "float64")
    for b, prompt in enumerate(prompts):
        for t, token in enumerate(words_of(prompt)[: prefixes.shape[1]]):
            logits[b, t] = -np.inf
            logits[b, t, token] = 0.0
    return logits


def continuation(row, prompt):
    """Returns the whole model's log-probabilities of the tokens after the prompt, in float64."""
    text, begun = unpadded(row), len(words_of(prompt))
    logits = logits_of(talkative_text())(np.array([[BOS, *text[:-1]]], "int32"))
    rows = reference.log_probabilities(logits)[0]
    return [rows[place][token] for place, token in enumerate(text) if place >= begun]


@pytest.mark.long
@pytest.mark.slow
def test_the_prompts_give_different_texts():
    prompts = text_prompts()
    tokens = by_greedy(talkative_text(), prompts, cache_length=LIMIT)[0].numpy()
    assert [len(words_of(prompt)) for prompt in prompts] == [3, 1, 6, 4, 0]
    rests = [
        tuple(unpadded(row)[len(words_of(p)) :]) for row, p in zip(tokens, prompts, strict=True)
    ]
    assert len(set(rests)) == 5 and len({len(rest) for rest in rests}) > 1
    assert any(EOS in rest for rest in rests)
    free = by_greedy(talkative_text(), np.full((1, 1), EOS), cache_length=LIMIT)[0].numpy()
    assert all(unpadded(row)[:1] != unpadded(free[0])[:1] for row in tokens[:4]), (
        "prompts are forced"
    )


def test_greedy_search_equals_a_loop_in_python():
    prompts = text_prompts()
    tokens, scores = by_greedy(talkative_text(), prompts, cache_length=LIMIT)
    expected, expected_scores = reference.greedy(forced, prompts, LIMIT, **IDS)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, **SCORES)


def test_a_beam_equals_a_loop_in_python(beam_size=4):
    prompts = text_prompts()
    outputs = by_beam(talkative_text(), prompts, beam_size, beam_size, cache_length=LIMIT)
    for b, prompt in enumerate(prompts):
        best = reference.beam(forced_alone(prompt), prompt, beam_size, SCORE, 1, LIMIT, **IDS)
        best = [pair for pair in best if np.isfinite(pair[0])][:beam_size]
        assert len(best) == beam_size
        for place, (total, words) in enumerate(best):
            assert unpadded(outputs[0][b, place].numpy()) == words
            np.testing.assert_allclose(outputs[1][b, place], total, **SCORES)


def forced_alone(prompt):
    """Returns the logits like `forced`, for any number of hypotheses of a single prompt."""
    return lambda _, prefixes: forced([prompt] * len(prefixes), prefixes)


@pytest.mark.long
@pytest.mark.slow
@each_search
def test_an_output_begins_with_its_prompt_which_does_not_count_in_the_score(name):
    """The score of the output is the score of the continuation, by one pass of the whole model."""
    prompts = text_prompts()
    options = {"normalization": "none"} if name == "beam" else {}
    tokens, scores = SEARCHES[name](talkative_text(), prompts, cache_length=LIMIT, **options)
    for b, prompt in enumerate(prompts):
        words = words_of(prompt)
        for row, total in zip(tokens[b].numpy(), scores[b].numpy(), strict=True):
            assert unpadded(row)[: len(words)] == words
            np.testing.assert_allclose(total, sum(continuation(row, prompt)), **SCORES)
    if name == "beam":
        assert all(len({tuple(row) for row in rows.tolist()}) == 3 for rows in tokens.numpy())


@pytest.mark.parametrize("name", [slow("beam"), "sample"])
def test_steps_with_a_cache_equal_the_whole_model(name):
    """Checks the logits after each position, prompts included, and the token scores of `score`."""
    predictor, prompts = predictor_of(talkative_text()), text_prompts()
    assert isinstance(predictor, DecoderOnly)
    tokens = SEARCHES[name](predictor, prompts, cache_length=LIMIT)[0][:, 0]
    shifted = tf.concat([tf.fill([5, 1], BOS), tokens[:, :-1]], axis=1)
    steps = Predictor.logits(predictor, prompts, shifted)
    whole = predictor.logits(prompts, shifted)
    steps, whole = map(reference.log_probabilities, (steps, whole))
    real = tokens.numpy() != PAD
    np.testing.assert_allclose(steps[real], whole[real], **SCORES)
    gains, sums = score(predictor, prompts, tokens)
    for b, prompt in enumerate(prompts):
        expected = [0.0] * len(words_of(prompt)) + continuation(tokens[b].numpy(), prompt)
        np.testing.assert_allclose(gains[b, : len(expected)], expected, **SCORES)
        np.testing.assert_allclose(sums[b], sum(expected), **SCORES)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_prompts_of_different_lengths_equal_each_of_them_alone(name):
    prompts = text_prompts()
    tokens, scores = SEARCHES[name](talkative_text(), prompts, cache_length=LIMIT)
    for b, prompt in enumerate(prompts):
        alone = prompt[None, : np.count_nonzero(prompt)]
        own, own_scores = SEARCHES[name](talkative_text(), alone, cache_length=LIMIT)
        np.testing.assert_array_equal(tokens[b], own[0])
        np.testing.assert_allclose(scores[b], own_scores[0], **SCORES)


def test_an_empty_prompt_is_the_beginning_of_any_text():
    """Padding after it changes nothing."""
    outputs = [
        by_greedy(talkative_text(), np.array(prompt, "int32"), cache_length=LIMIT)
        for prompt in ([[EOS]], [[EOS, PAD, PAD]])
    ]
    free, _ = reference.greedy(
        lambda _, prefixes: logits_of(talkative_text())(prefixes), np.array([[EOS]]), LIMIT, **IDS
    )
    for tokens, scores in outputs:
        np.testing.assert_array_equal(tokens, free)
        np.testing.assert_allclose(scores, sum(continuation(free[0], np.array([EOS]))), **SCORES)


def test_a_prompt_longer_than_the_output_is_truncated():
    prompts = text_prompts()
    tokens, scores = by_greedy(talkative_text(), prompts, cache_length=3)
    np.testing.assert_array_equal(tokens[2], prompts[2, :3])
    assert scores[2] == 0.0
    np.testing.assert_array_equal(tokens[0], prompts[0, :3])


@pytest.mark.parametrize(
    "name", ["greedy", *(pytest.param(x, marks=pytest.mark.slow) for x in ("beam", "sample"))]
)
def test_the_limit_counts_the_tokens_after_the_prompt(name):
    """The new tokens are the first ones of those without a limit."""
    prompts, most = text_prompts(), 3
    lengths = [len(words_of(prompt)) for prompt in prompts]
    width = max(lengths) + most
    tokens, _ = SEARCHES[name](talkative_text(), prompts, max_length=most)
    free, _ = SEARCHES[name](talkative_text(), prompts, cache_length=width)
    assert tokens.shape[-1] == width
    news = []
    for length, prompt, rows, whole in zip(lengths, prompts, tokens, free, strict=True):
        for row in rows.numpy():
            assert unpadded(row)[:length] == words_of(prompt)
        news.append(len(unpadded(rows[0].numpy())) - length)
        if name != "beam":  # the best hypothesis of a beam may differ
            np.testing.assert_array_equal(rows[0, : length + most], whole[0, : length + most])
    assert max(news) == most and min(news) > 0


@pytest.mark.parametrize("name", [slow("greedy"), slow("beam")])
def test_each_prompt_has_its_own_limit_as_alone(name):
    prompts, limits = text_prompts(), [2, 4, 1, 3, 9]
    options = {"cache_length": 13}  # fewer than the last prompts need
    tokens, scores = SEARCHES[name](
        talkative_text(), prompts, max_length=tf.constant(limits), **options
    )
    for b, (prompt, limit) in enumerate(zip(prompts, limits, strict=True)):
        own = SEARCHES[name](talkative_text(), prompt[None], max_length=limit, **options)
        np.testing.assert_array_equal(tokens[b], own[0][0])
        np.testing.assert_allclose(scores[b], own[1][0], **SCORES)
        counts = np.count_nonzero(tokens[b], axis=-1) - len(words_of(prompt))
        assert 0 < counts.max() <= limit


@pytest.mark.long
@pytest.mark.slow
def test_a_graph_of_any_prompts_has_the_same_limits():
    prompts = text_prompts()
    expected = by_greedy(talkative_text(), prompts, max_length=3)
    traced = tf.function(
        lambda prompts: by_greedy(talkative_text(), prompts, max_length=3, cache_stages=()),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )
    tokens, scores = traced(prompts)
    width = expected[0].shape[1]
    np.testing.assert_array_equal(tokens[:, :width], expected[0])
    assert tokens.shape[1] == 29 and not np.any(tokens[:, width:])
    np.testing.assert_allclose(scores, expected[1], **SCORES)


@pytest.mark.long
@pytest.mark.slow
def test_the_other_lengths_of_a_beam_count_the_same_tokens():
    prompts = text_prompts()
    lengths = np.array([len(words_of(prompt)) for prompt in prompts])
    found = Beam(3, extra_length=2)(talkative_text(), prompts, SearchOptions(cache_length=LIMIT))
    limited = Beam(3, extra_length=None, max_length=3)(
        talkative_text(), prompts, SearchOptions(n_best=1, cache_length=LIMIT)
    )
    np.testing.assert_array_equal(found.tokens, limited.tokens)
    longest = Beam(3, extra_length=None, min_length=5)(
        talkative_text(), prompts, SearchOptions(n_best=1, cache_length=LIMIT)
    )
    assert (np.count_nonzero(longest.tokens[:, 0], axis=1) >= lengths + 5).all()
    assert (np.count_nonzero(limited.tokens[:, 0], axis=1) < lengths + 5).all()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_a_state_that_grows_in_stages_gives_the_same(name):
    prompts = text_prompts()
    expected, outputs = (
        SEARCHES[name](talkative_text(), prompts, cache_length=LIMIT, cache_stages=stages)
        for stages in ((), (2, 5))
    )
    np.testing.assert_array_equal(outputs[0], expected[0])
    np.testing.assert_allclose(outputs[1], expected[1], **SCORES)


@pytest.mark.long
@pytest.mark.slow
def test_samples_differ_and_temperature_zero_is_greedy():
    prompts = text_prompts()
    drawn = [
        by_sample(talkative_text(), prompts, 2.0, seed=(1, seed), cache_length=LIMIT)[0]
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert all(np.any(drawn[0][b] != drawn[2][b]) for b in range(5))
    expected = by_greedy(talkative_text(), prompts, cache_length=LIMIT)[0]
    tokens = by_sample(talkative_text(), prompts, 0.0, cache_length=LIMIT)[0]
    np.testing.assert_array_equal(tokens, expected)


@pytest.mark.long
@pytest.mark.slow
def test_compiled_is_eager(name="sample", jit_compile=True):
    prompts = text_prompts()
    expected = SEARCHES[name](talkative_text(), prompts, cache_length=7)
    compiled = tf.function(
        lambda prompts: SEARCHES[name](talkative_text(), prompts, cache_length=7),
        input_signature=[tf.TensorSpec([5, 8] if jit_compile else [None, None], tf.int32)],
        jit_compile=jit_compile,
    )
    tokens, scores = compiled(tf.constant(prompts))
    np.testing.assert_array_equal(tokens, expected[0])
    np.testing.assert_allclose(scores, expected[1], **SCORES)


def test_banned_tokens_do_not_follow_prompts(name="beam"):
    prompts = text_prompts()
    free = SEARCHES[name](talkative_text(), prompts, cache_length=LIMIT)[0].numpy()
    in_prompts = {token for prompt in prompts for token in words_of(prompt)}
    banned = np.isin(np.arange(19), list({*free.flat} - in_prompts - {PAD, EOS}))
    assert banned.any()
    constraints = Constraints(banned=banned)
    tokens, _ = SEARCHES[name](
        talkative_text(), prompts, cache_length=LIMIT, constraints=constraints
    )
    for b, prompt in enumerate(prompts):
        words = words_of(prompt)
        for row in tokens[b].numpy():
            assert unpadded(row)[: len(words)] == words
            assert not banned[unpadded(row)].any()


def test_another_model_and_an_alignment_are_refused():
    with pytest.raises(TypeError, match="must be a LanguageModel. Received: .* type Transformer"):
        DecoderOnly(talkative())
    with pytest.raises(ValueError, match=r"attends to no source. Received: alignment=\(0, 0\)"):
        by_greedy(talkative_text(), text_prompts(), alignment=(0, 0))
    message = "`model` must be one of LanguageModel, Transformer, or a .* Received: .*str"
    with pytest.raises(TypeError, match=message):
        by_greedy("model", sources())


@pytest.mark.parametrize("name", [slow("beam"), "sample"])
def test_a_prompt_is_kept_even_if_its_tokens_are_forbidden(name):
    """Constraints apply to the tokens after the prompt."""
    model, prompts = talkative_text(), text_prompts()
    size = model.config.tokens.vocab_size
    banned = np.zeros(size, bool)
    banned[[token for prompt in prompts for token in words_of(prompt)]] = True
    assert not banned.all()
    for constraints in (Constraints(banned=banned), Constraints(no_repeat_ngram=1)):
        tokens, scores = SEARCHES[name](model, prompts, cache_length=LIMIT, constraints=constraints)
        for prompt, rows, row_scores in zip(prompts, tokens.numpy(), scores.numpy(), strict=True):
            begun = words_of(prompt)[:LIMIT]
            for row, score_of_row in zip(rows, row_scores, strict=True):
                if score_of_row < -1e8:
                    continue  # there are fewer hypotheses
                text = unpadded(row)
                assert text[: len(begun)] == begun
                rest = [token for token in text[len(begun) :] if token != EOS]
                if constraints.banned is not None:
                    assert not banned[rest].any()
                else:
                    assert len(set(rest)) == len(rest) and not set(rest) & set(begun)
        assert (scores.numpy()[:, 0] > -1e8).all()
