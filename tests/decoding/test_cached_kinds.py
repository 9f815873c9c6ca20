"""Searches with a cache, for every kind of model with its own computation of scores or logits."""

import functools

import mixer_rows
import numpy as np
import pytest
import reference
import tensorflow as tf
from searching import by_beam, by_greedy, by_sample
from support import S, T, sentences

from keras_transformer.decoding import Predictor, Step, Vocabulary

LIMIT, STAGES = 13, (3, 7)
KINDS = {
    "alibi": {"position": "alibi"},
    "dot_product": {"score": "dot_product", "norm": "pre"},
    "additive": {"score": "additive", "position": "alibi", "attention_bias": True},
    "relative": {"position": {"kind": "relative", "distance": 3}, "score": "general"},
    "t5": {"position": {"kind": "t5", "distance": 7, "buckets": 8}, "norm": "pre"},
    "binary": {"position": "binary", "score": "general"},
    "norms at both ends": {"embedding_norm": True, "final_norm": True},
    "output bias": {"output_bias": True},
    **mixer_rows.models(),
    "ssru, pre-norm": {"decoder": "ssru", "norm": "pre", "position": "none"},
    "bahdanau": {
        **{"mixer": "gru", "feed_forward": "none", "normalization": "none", "position": "none"},
        **{"cross_attention": {"num_heads": 1, "score": "additive"}, "embedding_scale": 1.0},
    },
    "bytenet": {
        **{"mixer": "dilated_convolution", "cross_attention": "same_position"},
        **{"feed_forward": "none", "normalization": "none", "position": "none"},
    },
    "scaled sums": {"normalization": "scale", "feed_forward": "none"},
    "zero start": {"decoder_start": "zeros", "position": "learned"},
    "output bias, untied": {"output_bias": True, "tie": "none", "target_vocab_size": 23},
    "llama, local": {
        **{"num_heads": 4, "num_key_value_heads": 2, "d_k": 6, "normalization": "rms"},
        **{
            "position": {"kind": "rotary", "base": 500.0},
            "window": 4,
        },
        **{
            "feed_forward": {"kind": "gated", "bias": False},
            "activation": "silu",
            "norm": "pre",
        },
    },
    "shared t5": {
        **{"position": {"kind": "t5", "shared": True}, "score": "dot_product"},
        **{"normalization": {"kind": "layer", "offset": False}},
        **{"feed_forward": "gated", "activation": "gelu_tanh", "num_decoder_layers": 2},
    },
}
each_kind = pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)


class Uncached(Predictor):
    """Computes an output from its first token again at each step; one output of each sentence."""

    def __init__(self, model):
        super().__init__(Vocabulary.of(model.config), LIMIT)
        self.model = model

    def begin(self, inputs, length, width=1):
        return tf.constant(inputs), tf.zeros([len(inputs), length], tf.int32)

    def step(self, tokens, state, index):
        source, target = state
        target = tf.where(tf.range(target.shape[1]) == index, tokens, target)
        logits = self.model({"source": source, "target": target}, training=False)
        return Step(tf.gather(logits, [index], axis=1), (source, target))


def logits_of(model):
    return lambda source, target: model({"source": source, "target": target}, training=False)


@pytest.mark.slow  # `tests/layers` tests every layer in this way
@each_kind
def test_a_step_at_a_time_is_the_whole_sentence(changes, small_model):
    model = small_model(**changes)
    source, target = sentences([S, 5]), sentences([T, 7], first=2)
    expected = model({"source": source, "target": target})
    memory, allowed = model.encode(source)
    cache, heads = model.start(memory, T)
    for t in range(T):
        logits, cache, _ = model.step(target[:, t : t + 1], cache, t, heads, allowed)
        np.testing.assert_allclose(logits[:, 0], expected[:, t], rtol=0, atol=1e-4)


@pytest.mark.slow  # the search is the same for all kinds; the test of steps covers them
@pytest.mark.parametrize(
    ("stages", "changes"),
    [
        pytest.param((), KINDS["shared t5"], id="one cache-shared t5"),
        pytest.param(STAGES, KINDS["shared t5"], id="stages-shared t5"),
    ],
)
def test_greedy_search_equals_the_search_without_a_cache(changes, stages, small_model):
    model = small_model(**changes)
    source = sentences([S, 5, 1], seed=3)
    tokens, scores = by_greedy(model, source, LIMIT, cache_stages=stages)
    expected, expected_scores = reference.greedy(logits_of(model), source, LIMIT, 2, 3, 0)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, rtol=0, atol=1e-4)


@pytest.mark.slow  # the search is the same for all kinds; the test of steps covers them
@pytest.mark.parametrize(
    ("stages", "changes"),
    [
        *(pytest.param((), KINDS[kind], id=f"one cache-{kind}") for kind in mixer_rows.MIXERS),
        pytest.param((), KINDS["llama, local"], id="one cache-llama, local"),
        pytest.param(STAGES, KINDS["shared t5"], id="stages-shared t5"),
    ],
)
def test_a_beam_equals_the_search_without_a_cache(changes, stages, small_model):
    model = small_model(**changes)
    source, size = sentences([7, 3], seed=3), 3
    tokens, scores = by_beam(
        model, source, size, size, max_length=LIMIT, cache_stages=stages, normalization="average"
    )
    normalize = functools.partial(reference.normalized, normalization="average", length_penalty=0)
    for row, line in enumerate(source):
        expected = reference.beam(logits_of(model), line, size, normalize, 1, LIMIT, 2, 3, 0)
        for place, (score, wanted) in enumerate(expected[:size]):
            padded = [*wanted, *[0] * (LIMIT - len(wanted))]
            np.testing.assert_array_equal(tokens[row, place], padded)
            np.testing.assert_allclose(scores[row, place], score, rtol=0, atol=1e-4)


@pytest.mark.slow  # the search is the same for all kinds; the test of steps covers them
@pytest.mark.parametrize("kind", mixer_rows.MIXERS)
def test_samples_equal_those_without_a_cache(kind, small_model):
    model, source = small_model(**KINDS[kind]), sentences([S, 5, 1, 7, 9, 3], seed=3)
    seed = [(1, row) for row in range(len(source))]
    options = {"temperature": 4.0, "seed": seed, "max_length": LIMIT, "cache_length": LIMIT}
    tokens, scores = by_sample(model, source, **options)
    expected, expected_scores = by_sample(Uncached(model), source, **options)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, rtol=0, atol=1e-4)
    assert len({*tokens.numpy().flat}) > 5
