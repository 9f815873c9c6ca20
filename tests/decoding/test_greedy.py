"""Greedy decoding: cached = uncached, alone = in a batch, eager = compiled; and when it stops."""

import functools

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from searching import by_greedy
from support import randomise, sentences, small_config, weights_of

from keras_transformer import Transformer

LIMIT = 17
SCORES = {"rtol": 0, "atol": 1e-4}
VARIANTS = ["paper", "untied_pre_norm_learned"]


def digits_to_reverse(count, seed):
    """Returns sources of 1 to 12 words, and decoder inputs and labels of the reversed words."""
    rng = np.random.default_rng(seed)
    source, target, labels = np.zeros((3, count, 13), "int32")
    for row in range(count):
        length = rng.integers(1, 13)
        words = rng.integers(4, 19, length)
        source[row, : length + 1] = [*words, 3]
        target[row, : length + 1] = [2, *words[::-1]]
        labels[row, : length + 1] = [*words[::-1], 3]
    return source, target, labels


@functools.cache
def talkative(variant):
    """A model whose outputs differ in their tokens and lengths and are mostly shorter than `LIMIT`.

    Random weights repeat one token for ever, so the paper's variant is trained for a few seconds
    to reverse its input. The other variant needs no training: its learned positions have large
    weights, its own earlier tokens and the biases of its norms small ones.
    """
    if variant == "paper":
        return half_trained(Transformer(small_config()))
    model = Transformer(
        small_config(norm="pre", tie="none", position="learned", attention_bias=True)
    )
    larger = {"positions": 20, "query/kernel": 4, "attention/output/kernel": 4}
    smaller = {"beta": 0, "target_embedding/table": 0.3}
    for weight in randomise(model).weights:
        for path, factor in {**larger, **smaller}.items():
            if weight.path.endswith(path):
                weight.assign(weight * factor)
    return model


def half_trained(model):
    keras.utils.set_random_seed(7)
    source, target, labels = digits_to_reverse(64 * 100, seed=0)
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    model.fit(
        {"source": source, "target": target},
        labels,
        sample_weight=(labels != 0).astype("float32"),
        batch_size=64,
        verbose=0,
    )
    return model


def sources():
    return digits_to_reverse(7, seed=1)[0]


def lengths(tokens):
    """Returns the number of tokens of each output, eos included."""
    return [int((row != 0).sum()) for row in np.asarray(tokens)]


def as_function(function):
    """Traces a function once for all batches and lengths: cheaper than many eager calls."""
    tokens = tf.TensorSpec([None, None], tf.int32)
    signature = [tokens] * function.__code__.co_argcount
    return tf.function(function, input_signature=signature, autograph=False)


@functools.cache
def decoder_of(model, limit):
    return as_function(lambda source: by_greedy(model, source, limit))


@functools.cache
def logits_of(model):
    """Returns a function that computes the logits of a whole target, without a cache."""
    return as_function(lambda source, target: model({"source": source, "target": target}))


def decode(model, source, limit=LIMIT):
    tokens, scores = decoder_of(model, limit)(source)
    return tokens.numpy(), scores.numpy()


def decode_eagerly(model, source, limit=LIMIT):
    """Decodes without a graph, for models that decode only once: tracing would take longer."""
    tokens, scores = by_greedy(model, source, limit)
    return tokens.numpy(), scores.numpy()


def uncached(logits, config, source, limit=LIMIT):
    return reference.greedy(
        logits,
        source,
        limit,
        bos_id=config.tokens.bos_id,
        eos_id=config.tokens.eos_id,
        pad_id=config.tokens.pad_id,
    )


def test_cached_is_uncached(variant="untied_pre_norm_learned"):
    """Compares the cache with the model itself, which recomputes every prefix."""
    model, source = talkative(variant), sources()
    expected, expected_scores = uncached(logits_of(model), model.config, source)
    assert len(set(lengths(expected))) > 3, "sentences of one length would show little"
    assert len(np.unique(expected)) > 10, "and so would few words"
    tokens, scores = decode(model, source)
    assert (tokens.dtype, scores.dtype) == ("int32", "float32")
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, **SCORES)


def test_cached_is_the_reference_without_a_cache(variant="untied_pre_norm_learned"):
    model, source = talkative(variant), sources()[:3]
    logits = functools.partial(reference.transformer, weights_of(model), model.config)
    expected, expected_scores = uncached(logits, model.config, source)
    tokens, scores = decode(model, source)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, **SCORES)


@pytest.mark.long
@pytest.mark.slow
def test_a_sentence_alone_is_the_same_sentence_in_a_batch():
    """For any neighbours, any order of the batch and any padding."""
    model, source = talkative("paper"), sources()
    tokens, scores = decode(model, source)
    for b, row in enumerate(source):
        alone, score = decode(model, row[None, row != 0])
        np.testing.assert_array_equal(alone[0], tokens[b])
        np.testing.assert_allclose(score[0], scores[b], **SCORES)
    backwards, backward_scores = decode(model, np.pad(source, [(0, 0), (0, 6)])[::-1])
    np.testing.assert_array_equal(backwards[::-1], tokens)
    np.testing.assert_allclose(backward_scores[::-1], scores, **SCORES)


def test_only_padding_follows_eos():
    tokens, _ = decode(talkative("untied_pre_norm_learned"), sources())
    ends = [np.flatnonzero(row == 3).tolist() for row in tokens]
    assert len({end[0] for end in ends if end}) > 2 and [] in ends
    for row, end in zip(tokens, ends, strict=True):
        assert len(end) <= 1
        assert not end or np.all(row[end[0] + 1 :] == 0)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_the_loop_stops_when_every_sentence_has_ended(compiled, monkeypatch):
    """Counts calls of the decoder's feed-forward network: one per token of the longest output."""
    model, source = talkative("paper"), sources()
    expected = np.array(lengths(decode(model, source)[0]))
    source, expected = source[expected < LIMIT], expected[expected < LIMIT]
    inner = model.decoder.blocks[0].feed_forward.inner
    original, calls = inner.activation, []

    def counting(x):
        return tf.ensure_shape(
            tf.py_function(lambda x: calls.append(1) or original(x), [x], x.dtype), x.shape
        )

    monkeypatch.setattr(inner, "activation", counting)

    def decoder(source):
        return by_greedy(model, source, LIMIT)

    decoder = as_function(decoder) if compiled else decoder
    for chosen in (slice(None), [np.argmin(expected)]):
        calls.clear()
        tokens, _ = decoder(source[chosen])
        assert len(calls) == max(lengths(tokens)) == max(expected[chosen])


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 4])
def test_max_length_truncates_and_changes_nothing_before_the_cut(limit):
    model, source = talkative("paper"), sources()
    whole, _ = decode(model, source)
    cut, scores = decode(model, source, limit)
    np.testing.assert_array_equal(cut, whole[:, :limit])
    assert np.any(cut[:, -1] > 3), "a sentence that the limit cuts has no eos"
    expected, expected_scores = uncached(logits_of(model), model.config, source, limit)
    np.testing.assert_array_equal(cut, expected)
    np.testing.assert_allclose(scores, expected_scores, **SCORES)


@pytest.mark.slow
def test_max_length_defaults_to_the_config():
    model, source = talkative("paper"), sources()
    tokens, scores = by_greedy(model, source)
    assert tokens.shape == (7, model.config.max_length)
    expected, expected_scores = decode(model, source, model.config.max_length)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, **SCORES)


@pytest.mark.slow
def test_compiled_is_eager(variant="untied_pre_norm_learned", jit_compile=True):
    model, source = talkative(variant), sources()
    expected, expected_scores = by_greedy(model, source, LIMIT)
    compiled = tf.function(lambda source: by_greedy(model, source, LIMIT), jit_compile=jit_compile)
    for decoder in [compiled] if jit_compile else [compiled, decoder_of(model, LIMIT)]:
        tokens, scores = decoder(tf.constant(source))
        np.testing.assert_array_equal(tokens, expected)
        np.testing.assert_allclose(scores, expected_scores, **SCORES)


@pytest.mark.slow
def test_another_pad_id(small_model):
    model = small_model(pad_id=7)
    source = sentences([13, 6, 1, 9, 4, 11, 8], pad_id=7)
    expected, expected_scores = uncached(logits_of(model), model.config, source)
    assert np.any(expected == 7)
    tokens, scores = decode_eagerly(model, source)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, **SCORES)


@pytest.mark.slow
def test_another_start_and_end_token():
    """The weights are the same; the tokens that begin and end a sentence come from the config."""
    trained = talkative("paper")
    other = Transformer(small_config(bos_id=9, eos_id=8))
    other.set_weights(trained.get_weights())
    source = sources()
    expected, expected_scores = uncached(logits_of(trained), other.config, source)
    tokens, scores = decode_eagerly(other, source)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, **SCORES)


@pytest.mark.slow
def test_decoding_applies_no_dropout(small_model):
    source = sentences([13, 6, 1])
    expected, expected_scores = decode_eagerly(small_model(), source)
    dropping = small_model(dropout=0.4, attention_dropout=0.4, activation_dropout=0.4)
    tokens, scores = decode_eagerly(dropping, source)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_array_equal(scores, expected_scores)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_float16"], indirect=["policy"])
def test_an_empty_source_stays_finite(policy, small_model):
    """Nothing can be attended to, but there is an output, and its neighbour is unaffected."""
    model = small_model()
    source = sentences([13, 6])
    expected, _ = decode_eagerly(model, source, 5)
    source[1] = 0
    tokens, scores = decode_eagerly(model, source, 5)
    assert (tokens.dtype, scores.dtype) == ("int32", "float32")
    assert np.all(np.isfinite(scores))
    assert np.all((tokens >= 0) & (tokens < 19))
    np.testing.assert_array_equal(tokens[0], expected[0])


@pytest.mark.slow
def test_every_sentence_can_have_its_own_max_length():
    """The limits are a tensor and one graph serves all; one limit is cut at the cache's length."""
    model, source = talkative("untied_pre_norm_learned"), sources()
    traces = []

    @tf.function(reduce_retracing=True)
    def decoder(source, max_length):
        traces.append(1)
        return by_greedy(model, source, max_length, LIMIT)

    for limits in ([3, 17, 1, 4, 100, 9, 2], [17, 2, 5, 3, 3, 1, 17]):
        tokens, scores = decoder(source, tf.constant(limits))
        for b, limit in enumerate(np.minimum(limits, LIMIT)):
            row = source[b : b + 1]
            expected, score = uncached(logits_of(model), model.config, row, limit)
            np.testing.assert_array_equal(tokens[b, :limit], expected[0])
            assert np.all(tokens[b, limit:] == 0)
            np.testing.assert_allclose(scores[b], score[0], **SCORES)
    assert len(traces) == 1


@pytest.mark.slow
def test_a_cache_longer_than_max_length_changes_only_the_shape():
    model, source = talkative("untied_pre_norm_learned"), sources()
    tokens, scores = decode(model, source, 4)
    longer, same = by_greedy(model, source, 4, 7)
    assert longer.shape == (7, 7)
    np.testing.assert_array_equal(longer, np.pad(tokens, [(0, 0), (0, 3)]))
    np.testing.assert_allclose(same, scores, **SCORES)


@pytest.mark.parametrize("length", [0, 30])
def test_the_cache_must_fit_the_model(small_model, length):
    message = rf"`cache_length` must be between 1 and 29\. Received: cache_length={length}\."
    with pytest.raises(ValueError, match=message):
        by_greedy(small_model(), sentences([3]), cache_length=length)
