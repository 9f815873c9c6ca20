"""Sampling: its frequencies against probabilities in NumPy, its support, and its seeds."""

import numpy as np
import pytest
import reference
import tensorflow as tf
from searching import by_greedy, by_sample
from uncertain_models import BOS, EOS, PAD, logits_of, sources, talkative, unpadded

from keras_transformer.decoding import Constraints, Sample

LIMIT = 9
SCORES = {"rtol": 0, "atol": 1e-4}
CONTROLS = [
    {},
    {"temperature": 2.0},
    {"temperature": 0.3},
    {"top_k": 2},
    {"top_k": 100},
    {"top_p": 0.6},
    {"top_p": 0.0},
    {"temperature": 1.7, "top_k": 4, "top_p": 0.8},
    {"min_p": 0.25},
    {"min_p": 1.0},
    {"temperature": 0.8, "top_k": 4, "top_p": 0.9, "min_p": 0.3},
]


def truncated(logits, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    """Returns the probabilities of a step: temperature, then top k, then top p, then min p."""
    probabilities = np.exp((logits - logits.max()) / temperature)
    ranking = sorted(range(len(logits)), key=lambda token: (-probabilities[token], token))
    ranking = ranking[: top_k or None]
    mass = sum(probabilities[token] for token in ranking)
    kept, so_far = [], 0.0
    for token in ranking:
        if kept and so_far >= top_p * mass:
            break
        kept.append(token)
        so_far += probabilities[token]
    kept = [token for token in kept if probabilities[token] >= min_p * probabilities[kept[0]]]
    so_far = sum(probabilities[token] for token in kept)
    result = np.zeros(len(logits))
    for token in kept:
        result[token] = probabilities[token] / so_far
    return result


def words_only(logits):
    logits = np.array(logits, "float64")
    logits[..., [PAD, BOS]] = -np.inf
    return logits


def tensors(controls):
    """Returns the controls as tensors, as a graph gets them."""
    return {name: tf.constant(value) for name, value in controls.items()}


@pytest.mark.parametrize("controls", CONTROLS)
def test_evenly_spaced_draws_give_every_token_its_share(controls):
    """Inverts the cumulative probabilities, with two equal logits and a forbidden token."""
    logits = np.array([0.3, 1.1, -1e9, 1.1, -2.0, 0.9, 2.5], "float32")
    count = 20_000
    draws = (np.arange(count, dtype="float32")[:, None] + 0.5) / count
    rows = tf.repeat(logits[None], count, axis=0)
    tokens = Sample(**tensors(controls)).draw(rows, tf.constant(draws)).numpy()
    expected = truncated(np.where(logits < -1e8, -np.inf, logits).astype("float64"), **controls)
    shares = np.bincount(tokens, minlength=7) / count
    assert np.all(expected[shares > 0] > 0) and np.all(shares[expected > 1 / count] > 0)
    np.testing.assert_allclose(shares, expected, rtol=0, atol=2 / count)


def test_top_k_keeps_the_first_of_equal_tokens():
    """The largest possible draw also stays inside, however the sum is rounded."""
    logits = tf.constant([[1.0, 0.0, 1.0, 1.0, -1e9]])
    for draw, expected in [(0.0, 0), (0.49, 0), (0.51, 2), (1 - 2.0**-24, 2)]:
        assert Sample(top_k=tf.constant(2)).draw(logits, tf.constant([[draw]])) == expected
    many = tf.constant([[0.1] * 999 + [-1e9]])
    assert Sample().draw(many, tf.constant([[1 - 2.0**-24]])) == 998


@pytest.mark.parametrize("controls", [{"temperature": 1.7, "top_k": 3, "top_p": 0.9}])
def test_pairs_of_tokens_occur_with_their_probabilities(
    controls,
):
    """Chi-square over all pairs; the probabilities are those of the model without a cache."""
    model, count = talkative(vocab_size=6), 3000
    row = sources(6)[:1]
    seed = np.stack([np.arange(count), np.full(count, 5)], 1)
    tokens, _ = by_sample(
        model, np.repeat(row, count, 0), **tensors(controls), seed=seed, max_length=2
    )
    expected = {}
    (first,) = words_only(logits_of(model)(row, [[BOS]]))[:, 0]
    for token, share in enumerate(truncated(first, **controls)):
        if token == EOS:
            expected[token, PAD] = share
        elif share:
            (second,) = words_only(logits_of(model)(row, [[BOS, token]]))[:, 1]
            then = truncated(second, **controls)
            expected.update({(token, last): share * then[last] for last in range(6)})
    pairs, counts = np.unique(tokens, axis=0, return_counts=True)
    observed = {tuple(map(int, pair)): n for pair, n in zip(pairs, counts, strict=True)}
    expected = {pair: count * share for pair, share in expected.items() if share > 0}
    assert set(observed) <= set(expected)
    assert len(expected) > 5
    rare = sum(n for n in expected.values() if n < 5)
    assert sum(observed.get(pair, 0) for pair, n in expected.items() if n < 5) <= 2 * rare + 5
    cells = {pair: n for pair, n in expected.items() if n >= 5}
    square = sum((observed.get(pair, 0) - n) ** 2 / n for pair, n in cells.items())
    assert square < len(cells) + 4 * (2 * len(cells)) ** 0.5


def test_scores_are_those_of_the_model_whatever_the_truncation():
    model, source = talkative(), sources()
    controls = {"temperature": 1.5, "top_k": 5}
    tokens, scores = by_sample(model, source, **controls, max_length=LIMIT)
    assert (tokens.dtype, scores.dtype) == (tf.int32, tf.float32)
    tokens = tokens.numpy()
    target = np.insert(tokens[:, :-1], 0, BOS, axis=1)
    rows = reference.log_probabilities(logits_of(model)(source, target))
    rows = np.take_along_axis(rows, tokens[:, :, None], 2)[:, :, 0]
    np.testing.assert_allclose(scores, np.where(tokens == PAD, 0, rows).sum(1), **SCORES)
    for row in tokens:
        assert np.all(row[len(unpadded(row)) :] == PAD) and BOS not in row
        assert EOS not in unpadded(row)[:-1]


@pytest.mark.slow
def test_low_temperature_is_greedy():
    """At 0 and just above, for any seed."""
    model, source = talkative(), sources()
    expected, expected_scores = by_greedy(model, source, LIMIT)
    for temperature, seed in [(0.0, (0, 0)), (1e-5, (3, 4))]:
        tokens, scores = by_sample(
            model, source, temperature=temperature, seed=seed, max_length=LIMIT
        )
        np.testing.assert_array_equal(tokens, expected)
        np.testing.assert_allclose(scores, expected_scores, **SCORES)


def test_a_sample_depends_only_on_its_sentence_and_seed():
    model, source = talkative(), sources()
    seed = np.array([[1, 2], [1, 2], [-7, 5], [0, 0], [9, 2**31 - 1]], "int32")
    tokens, scores = by_sample(model, source, seed=seed, max_length=LIMIT)
    backwards, backward_scores = by_sample(
        model, np.pad(source, [(0, 0), (0, 4)])[::-1], seed=seed[::-1], max_length=LIMIT
    )
    np.testing.assert_array_equal(backwards[::-1], tokens)
    np.testing.assert_allclose(backward_scores[::-1], scores, **SCORES)
    alone, _ = by_sample(
        model, source[2:3, source[2] != PAD], seed=seed[2], max_length=LIMIT, cache_length=LIMIT + 2
    )
    np.testing.assert_array_equal(alone[0, :LIMIT], tokens[2])


@pytest.mark.slow
def test_equal_sentences_get_equal_samples_with_one_seed_and_different_ones_with_many():
    model, source = talkative(), np.repeat(sources()[:1], 9, axis=0)
    same, _ = by_sample(model, source, seed=(8, 1), max_length=LIMIT)
    assert len(np.unique(same, axis=0)) == 1
    seed = np.stack([np.full(9, 8), np.arange(9)], 1)
    different, _ = by_sample(model, source, seed=seed, max_length=LIMIT)
    assert len(np.unique(different, axis=0)) == 9
    np.testing.assert_array_equal(different[1], same[0])


@pytest.mark.slow
def test_compiled_is_eager_and_the_controls_are_inputs(jit_compile=True):
    """One graph serves all controls; at their neutral values the result is as if not given."""
    model, source = talkative(), tf.constant(sources())
    traces = []

    @tf.function(jit_compile=jit_compile, reduce_retracing=True)
    def sample(source, temperature, top_k, top_p, seed, max_length):
        traces.append(1)
        return by_sample(
            model, source, temperature, top_k, top_p, seed, max_length, cache_length=LIMIT
        )

    for controls, seed in [
        ({}, (0, 1)),
        ({"temperature": 2.5, "top_k": 7, "top_p": 0.9}, (5, 6)),
        ({"top_p": np.array([0.1, 0.9, 1, 0.5, 0], "float32")[:, None]}, (5, 7)),
    ]:
        expected, expected_scores = by_sample(
            model, source, **controls, seed=seed, max_length=LIMIT - 1
        )
        given = {"temperature": 1.0, "top_k": 0, "top_p": np.ones([5, 1], "float32"), **controls}
        given["top_p"] = np.broadcast_to(np.float32(given["top_p"]), [5, 1])
        tokens, scores = sample(
            source, **tensors(given), seed=tf.constant(seed), max_length=tf.constant(LIMIT - 1)
        )
        np.testing.assert_array_equal(tokens[:, :-1], expected)
        np.testing.assert_allclose(scores, expected_scores, **SCORES)
    assert len(traces) == 1


@pytest.mark.parametrize(
    "wrong, message",
    [
        (
            {"temperature": -0.1},
            r"`temperature` must be at least 0 and finite\. Received: temperature=-0\.1",
        ),
        (
            {"top_k": -1},
            r"`top_k` must be an integer of at least 0 and below 2\*\*31\. Received: top_k=-1\.",
        ),
        ({"top_p": 1.1}, r"`top_p` must be between 0 and 1\. Received: top_p=1\.1\."),
        ({"cache_length": 30}, r"`cache_length` must be between 1 and 29\. .*cache_length=30\."),
        (
            {"seed": (1, 2, 3)},
            r"`seed` must be an integer, two of them, .*\. Received: shape \(3,\)\.",
        ),
    ],
)
def test_wrong_arguments_are_errors(wrong, message):
    with pytest.raises(ValueError, match=message):
        by_sample(talkative(), sources(), **wrong)


@pytest.mark.parametrize("temperature", [0.0, tf.constant([0.0, 0.0, 1.0])])
def test_without_temperature_the_first_of_equal_tokens_is_taken_for_any_draw(temperature):
    """As greedy search does; it used to draw among them."""
    logits = tf.constant([[0.5, 2.0, -1e9, 2.0, 2.0]] * 3)
    for draw in (0.0, 0.5, 1 - 2.0**-24):
        draws = tf.fill([3, 1], draw)
        for controls in ({}, {"top_k": 2}, {"top_p": 0.1}):
            tokens = Sample(temperature, **controls).draw(logits, draws).numpy()
            cold = tokens if tf.size(temperature) == 1 else tokens[:2]
            assert set(cold.tolist()) == {1}


@pytest.mark.slow
def test_without_temperature_a_model_of_ties_is_searched_greedily(small_model):
    """Eagerly, and in a graph whose temperature is a tensor; all logits are equal."""
    model = small_model()
    for weight in model.weights:
        weight.assign(tf.zeros_like(weight))
    source = sources()
    expected = by_greedy(model, source, LIMIT, constraints=Constraints())[0].numpy()

    @tf.function
    def search(temperature, seed):
        return by_sample(model, source, temperature, seed=seed, max_length=LIMIT)[0]

    for seed in range(3):
        np.testing.assert_array_equal(search(tf.constant(0.0), (seed, 1)), expected)
        tokens = by_sample(model, source, 0, seed=(seed, 1), max_length=LIMIT)[0]
        np.testing.assert_array_equal(tokens, expected)
    warm = search(tf.constant(1.0), (1, 1)).numpy()
    assert (warm != expected).any()
