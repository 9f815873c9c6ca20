"""Beam search: wide = exhaustive, narrow = plain Python, beam of 1 = greedy; and its limits."""

import functools
import itertools

import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow
from searching import by_beam, by_greedy
from support import sentences, small_config, weights_of
from uncertain_models import BOS, EOS, PAD, logits_of, sources, talkative, unpadded

from keras_transformer import Transformer
from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.tensorflow_converter import convert_functions

LIMIT = 9
SCORES = {"rtol": 0, "atol": 1e-4}
SCORINGS = [("gnmt", 0.6), ("gnmt", 2.0), ("average", 0.0), ("none", 0.0)]


def decode(model, source, **options):
    tokens, scores = by_beam(model, source, **{"max_length": LIMIT, **options})
    return tokens.numpy(), scores.numpy()


@functools.cache
def traced(model):
    """Traces the search once for batches of every shape; everything that may change is an argument.

    Tracing takes as long as ten eager searches.
    """

    def search(source, length_penalty, min_length, max_length):
        return by_beam(
            model,
            source,
            n_best=4,
            length_penalty=length_penalty,
            min_length=min_length,
            max_length=max_length,
            cache_length=LIMIT,
        )

    tokens, lengths = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec(None, tf.int32)
    signature = [tokens, tf.TensorSpec([], tf.float32), lengths, lengths]
    return tf.function(search, input_signature=signature, autograph=False)


def decode_traced(model, source, length_penalty=0.6, min_length=1, max_length=LIMIT):
    tokens, scores = traced(model)(source, length_penalty, min_length, max_length)
    return tokens.numpy(), scores.numpy()


def totals_of(model, source, group):
    """Sums the log-probabilities of sentences of one length, by a pass of the whole model."""
    words = np.array(group, "int32")
    target = np.insert(words[:, :-1], 0, BOS, axis=1)
    rows = logits_of(model)(np.repeat(source[None], len(words), 0), target)
    rows = reference.log_probabilities(rows)
    return np.take_along_axis(rows, words[:, :, None], 2).sum((1, 2))


def assert_ranked(outputs, expected):
    """Checks outputs against a list of pairs of score and tokens."""
    tokens, scores = outputs
    assert [unpadded(row) for row in tokens] == [list(tokens) for _, tokens in expected]
    np.testing.assert_allclose(scores, [score for score, _ in expected], **SCORES)


def exhaustive(model, source, score, min_length, max_length):
    """Scores every possible sentence, finished sentences first, without any search."""
    words = [
        token for token in range(model.config.tokens.vocab_size) if token not in (PAD, BOS, EOS)
    ]

    def scored(ends, length):
        group = [[*prefix, *ends] for prefix in itertools.product(words, repeat=length - len(ends))]
        totals = totals_of(model, source, group)
        return [
            (score(total, length), sentence) for total, sentence in zip(totals, group, strict=True)
        ]

    ended = [
        hypothesis for n in range(min_length, max_length + 1) for hypothesis in scored([EOS], n)
    ]
    return sorted(ended, reverse=True) + sorted(scored([], max_length), reverse=True)


def beam_of(logits, source, beam_size, score, min_length=1, max_length=LIMIT):
    return reference.beam(
        logits, source, beam_size, score, min_length, max_length, bos_id=BOS, eos_id=EOS, pad_id=PAD
    )


def scoring(normalization="gnmt", length_penalty=0.6):
    return functools.partial(
        reference.normalized, normalization=normalization, length_penalty=length_penalty
    )


@pytest.mark.parametrize(
    ("normalization", "length_penalty", "min_length"),
    [slow("gnmt", 2.0, 3), ("none", 0.0, 1), slow("none", 0.0, 3)],
)
def test_a_wide_beam_equals_exhaustive_search(normalization, length_penalty, min_length):
    """Three words and the end, at most four tokens: 40 finished sentences and 81 truncated ones."""
    model, source = talkative(vocab_size=6), sources(6)[:2]
    options = {"normalization": normalization, "length_penalty": length_penalty}
    tokens, scores = decode(
        model, source, size=121, n_best=121, min_length=min_length, max_length=4, **options
    )
    assert tokens.shape == (2, 121, 4)
    for b, row in enumerate(source):
        expected = exhaustive(model, row, scoring(**options), min_length, 4)
        count = len(expected)
        assert count == (121 if min_length == 1 else 9 + 27 + 81)
        assert_ranked((tokens[b, :count], scores[b, :count]), expected)
        assert np.all(tokens[b, count:] == PAD) and np.all(scores[b, count:] == -1e9)


def test_cached_is_uncached(norm="post", beam_size=5, normalization="none", length_penalty=0.0):
    """Compared with a search in plain Python that runs the whole model on the whole prefix."""
    model, source = talkative(norm), sources()
    options = {"normalization": normalization, "length_penalty": length_penalty}
    tokens, scores = decode(model, source, size=beam_size, n_best=beam_size, **options)
    assert (tokens.dtype, scores.dtype) == ("int32", "float32")
    assert tokens.shape == (5, beam_size, LIMIT)
    assert len({len(unpadded(row)) for hypotheses in tokens for row in hypotheses}) > 2, (
        "too alike to show much"
    )
    for b, row in enumerate(source):
        expected = beam_of(logits_of(model), row, beam_size, scoring(**options))
        assert_ranked((tokens[b], scores[b]), expected[:beam_size])


@pytest.mark.slow
def test_cached_is_the_reference_without_a_cache():
    """Compared with the paper in float64, which shares no code with the layers."""
    model, source = talkative(), sources()[:2]
    logits = functools.partial(reference.transformer, weights_of(model), model.config)
    tokens, scores = decode(model, source, size=3, n_best=3)
    for b, row in enumerate(source):
        assert_ranked((tokens[b], scores[b]), beam_of(logits, row, 3, scoring())[:3])


@pytest.mark.slow
def test_a_beam_of_one_is_greedy(norm="post"):
    model, source = talkative(norm), sources()
    expected, expected_scores = by_greedy(model, source, LIMIT)
    lengths = {len(unpadded(row)) for row in expected.numpy()}
    assert min(lengths) < LIMIT and max(lengths) == LIMIT, "some end, and some are cut"
    for normalization, length_penalty in SCORINGS:
        options = {"normalization": normalization, "length_penalty": length_penalty}
        tokens, scores = decode(model, source, size=1, **options)
        np.testing.assert_array_equal(tokens[:, 0], expected)
    np.testing.assert_allclose(scores[:, 0], expected_scores, **SCORES)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_beam_finds_better_outputs_than_greedy_search(norm):
    model, source = talkative(norm), sources()
    greedy, greedy_scores = by_greedy(model, source, LIMIT)
    tokens, scores = decode(model, source, size=5, normalization="none")
    ended = np.any(tokens[:, 0] == EOS, 1) == np.any(greedy.numpy() == EOS, 1)
    differs = ended & np.any(tokens[:, 0] != greedy, 1)
    assert np.any(differs)
    assert np.all(scores[differs, 0] > greedy_scores.numpy()[differs])


@pytest.mark.slow
def test_a_sentence_alone_is_the_same_sentence_in_a_batch():
    """For any neighbours, any order of the batch and any padding."""
    model, source = talkative(), sources()
    tokens, scores = decode_traced(model, source)
    for b, row in enumerate(source):
        alone, score = decode_traced(model, row[None, row != PAD])
        np.testing.assert_array_equal(alone[0], tokens[b])
        np.testing.assert_allclose(score[0], scores[b], **SCORES)
    backwards, backward_scores = decode_traced(model, np.pad(source, [(0, 0), (0, 6)])[::-1])
    np.testing.assert_array_equal(backwards[::-1], tokens)
    np.testing.assert_allclose(backward_scores[::-1], scores, **SCORES)


@pytest.mark.slow
def test_compiled_is_eager(jit_compile=True):
    """With every shape static, as in an export, and with shapes and limits left open."""
    model, source = talkative(), sources()
    expected, expected_scores = decode(model, source, n_best=4)
    compiled = tf.function(
        lambda source: by_beam(model, source, n_best=4, max_length=LIMIT),
        jit_compile=jit_compile,
    )
    for search in (
        [compiled] if jit_compile else [compiled, functools.partial(decode_traced, model)]
    ):
        tokens, scores = search(tf.constant(source))
        np.testing.assert_array_equal(tokens, expected)
        np.testing.assert_allclose(scores, expected_scores, **SCORES)


@pytest.mark.long
@pytest.mark.slow
def test_litert_needs_builtin_operators_only_and_returns_the_same():
    """Penalty and limit are inputs; the search begins with one hypothesis; some are truncated."""
    model, source = talkative(), sources()

    def search(source, length_penalty, max_length):
        tokens, scores = by_beam(
            model,
            source,
            n_best=4,
            length_penalty=length_penalty,
            max_length=max_length,
            cache_length=LIMIT,
        )
        return {"tokens": tokens, "scores": scores}

    function = tf.function(search, autograph=False).get_concrete_function(
        tf.TensorSpec(source.shape, tf.int32, name="source"),
        tf.TensorSpec([], tf.float32, name="length_penalty"),
        tf.TensorSpec([], tf.int32, name="max_length"),
    )
    content = convert_functions(model, {"beam": function})
    run = load_interpreter()(model_content=content).get_signature_runner("beam")
    for length_penalty, limit in [(0.6, LIMIT), (2.0, 5), (0.0, 1)]:
        options = {"length_penalty": np.float32(length_penalty), "max_length": np.int32(limit)}
        outputs = run(source=source, **options)
        tokens, scores = decode(model, source, n_best=4, **options)
        np.testing.assert_array_equal(outputs["tokens"][:, :, :limit], tokens[:, :, :limit])
        np.testing.assert_allclose(outputs["scores"], scores, **SCORES)


@pytest.mark.slow
@pytest.mark.parametrize(("normalization", "length_penalty"), [("gnmt", 2.0), ("none", 0.0)])
def test_n_best_are_distinct_and_sorted_and_have_their_own_scores(normalization, length_penalty):
    """Each score equals the model's score of that sentence in one pass."""
    model, source = talkative(), sources()
    options = {"normalization": normalization, "length_penalty": length_penalty}
    tokens, scores = decode(model, source, size=5, n_best=5, **options)
    for b, row in enumerate(source):
        texts = [tuple(unpadded(hypothesis)) for hypothesis in tokens[b]]
        assert len(set(texts)) == 5
        ended = [EOS in text for text in texts]
        assert ended == sorted(ended, reverse=True)
        for kind in (True, False):
            assert np.all(np.diff(scores[b][np.array(ended) == kind]) <= 0)
        for text, score in zip(texts, scores[b], strict=True):
            (total,) = totals_of(model, row, [text])
            np.testing.assert_allclose(score, scoring(**options)(total, len(text)), **SCORES)


@pytest.mark.slow
def test_a_shorter_n_best_list_is_a_prefix_of_a_longer_one():
    model, source = talkative(), sources()
    tokens, scores = decode(model, source, size=5, n_best=5)
    for n_best in (1, 2):
        fewer, fewer_scores = decode(model, source, size=5, n_best=n_best)
        np.testing.assert_array_equal(fewer, tokens[:, :n_best])
        np.testing.assert_allclose(fewer_scores, scores[:, :n_best], **SCORES)


@pytest.mark.slow
def test_sentences_are_well_formed_and_forbidden_tokens_are_never_emitted():
    """Padding and the start token get the highest probabilities of all."""
    model = talkative()
    kernel = model.output_layer.kernel.numpy().copy()
    try:
        changed = kernel.copy()
        changed[:, PAD], changed[:, BOS] = 3 * kernel[:, EOS], 3 * kernel[:, 7]
        model.output_layer.kernel.assign(changed)
        greedy, _ = by_greedy(model, sources(), LIMIT)
        assert np.any(greedy == BOS), "the model would emit it"
        tokens, scores = decode(model, sources(), size=4, n_best=4)
        for b, row in enumerate(sources()):  # and they do not displace any other token
            expected = beam_of(logits_of(model), row, 4, scoring())
            assert_ranked((tokens[b], scores[b]), expected[:4])
    finally:
        model.output_layer.kernel.assign(kernel)
    for row in tokens.reshape(-1, LIMIT):
        length = len(unpadded(row))
        assert np.all(row[length:] == PAD) and np.all(row[:length] != PAD)
        assert BOS not in row
        ends = np.flatnonzero(row == EOS).tolist()
        assert ends == [length - 1] or (ends == [] and length == LIMIT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("normalization", "length_penalty", "norm", "n_best"),
    [("gnmt", 2.0, "post", 1), ("none", 0.0, "post", 1)],
)
def test_stopping_early_changes_nothing(norm, n_best, normalization, length_penalty):
    options = {"normalization": normalization, "length_penalty": length_penalty, "n_best": n_best}
    model, source = talkative(norm), sources()
    tokens, scores = decode(model, source, **options)
    late, late_scores = decode(model, source, **options, early_stopping=False)
    np.testing.assert_array_equal(tokens, late)
    np.testing.assert_array_equal(scores, late_scores)


@pytest.mark.slow
def test_stopping_early_saves_steps(monkeypatch):
    """Counts the calls of the decoder's feed-forward network; the test above checks the results."""
    model, source = talkative("post"), sources()
    inner = model.decoder.blocks[0].feed_forward.inner
    original, calls = inner.activation, []
    monkeypatch.setattr(inner, "activation", lambda x: calls.append(1) or original(x))
    steps = {}
    for early_stopping in (True, False):
        for b, row in enumerate(source[:3]):
            calls.clear()
            by_beam(
                model,
                row[None],
                normalization="none",
                max_length=LIMIT,
                early_stopping=early_stopping,
            )
            steps[early_stopping, b] = len(calls)
    early, late = ([steps[stopping, b] for b in range(3)] for stopping in (True, False))
    assert all(a <= b for a, b in zip(early, late, strict=True)) and sum(early) < sum(late)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [slow(1), 4])
def test_max_length_is_the_same_as_a_number_and_as_a_tensor(limit):
    model, source = talkative(), sources()
    tokens, scores = decode(model, source, n_best=4, max_length=limit)
    assert tokens.shape == (5, 4, limit)
    same, same_scores = decode_traced(model, source, max_length=limit)
    np.testing.assert_array_equal(same[:, :, :limit], tokens)
    assert np.all(same[:, :, limit:] == PAD)
    np.testing.assert_allclose(same_scores, scores, **SCORES)


def test_every_sentence_can_have_its_own_lengths():
    model, source = talkative(), sources()
    longest = np.array([3, 9, 1, 4, 100], "int32")  # the last limit is above the cache's length
    shortest = np.array([1, 5, 1, 3, 7], "int32")
    tokens, scores = decode_traced(model, source, 0.6, shortest, longest)
    for b, row in enumerate(source):
        alone = decode_traced(model, row[None], 0.6, shortest[b], longest[b])
        np.testing.assert_array_equal(alone[0][0], tokens[b])
        np.testing.assert_allclose(alone[1][0], scores[b], **SCORES)
        lengths = [len(unpadded(hypothesis)) for hypothesis in tokens[b]]
        assert min(lengths) >= shortest[b] and max(lengths) <= longest[b]


@pytest.mark.slow
def test_min_length_forbids_an_earlier_end_and_nothing_else():
    model, source = talkative("post"), sources()
    free, _ = decode(model, source, n_best=4)
    assert min(len(unpadded(row)) for row in free.reshape(-1, LIMIT)) < 4
    tokens, scores = decode(model, source, n_best=4, min_length=4)
    for b, row in enumerate(source):
        expected = beam_of(logits_of(model), row, 4, scoring(), min_length=4)
        assert_ranked((tokens[b], scores[b]), expected[:4])


@pytest.mark.slow
def test_a_higher_length_penalty_makes_sentences_longer():
    model, source = talkative("post"), sources()
    short, long = (
        np.count_nonzero(decode(model, source, length_penalty=penalty)[0]) for penalty in (0.0, 3.0)
    )
    assert short < long


@pytest.mark.slow
def test_changing_arguments_does_not_retrace():
    model, traces = talkative(), []

    @tf.function(reduce_retracing=True)
    def search(source, length_penalty, min_length, max_length):
        traces.append(1)
        return by_beam(
            model,
            source,
            length_penalty=length_penalty,
            min_length=min_length,
            max_length=max_length,
            cache_length=LIMIT,
        )

    changes = [(0.6, 1, 9), (2.0, 1, 9), (0.6, 4, 9), (0.6, 1, 5)]
    scores = [search(sources(), *map(tf.constant, change))[1].numpy() for change in changes]
    assert len({values.tobytes() for values in scores}) == 4 and len(traces) == 1


@pytest.mark.slow
def test_max_length_defaults_to_the_config():
    tokens, _ = by_beam(talkative("post"), sources()[:2], 2)
    assert tokens.shape == (2, 1, 29)


@pytest.mark.slow
def test_another_end_token_and_a_start_token_that_is_the_end_or_padding():
    """The weights stay the same; the config chooses the start, end and padding tokens."""
    for bos_id, eos_id, pad_id in [(11, 17, 0), (3, 3, 0), (0, 3, 0)]:
        config = {"position": "learned", "attention_bias": True, "norm": "pre", "tie": "none"}
        config |= {"bos_id": bos_id, "eos_id": eos_id, "pad_id": pad_id}
        model = Transformer(small_config(**config))
        model.set_weights(talkative().get_weights())
        tokens, scores = by_beam(model, sources()[:2], 3, 3, max_length=5)
        for b, row in enumerate(sources()[:2]):
            expected = reference.beam(
                logits_of(model), row, 3, scoring(), 1, 5, bos_id, eos_id, pad_id
            )
            assert_ranked((tokens.numpy()[b], scores[b]), expected[:3])


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_float16"], indirect=["policy"])
def test_an_empty_source_stays_finite(policy, small_model):
    """Nothing can be attended to, but there is an output, and its neighbour is unaffected."""
    model = small_model()
    source = sentences([13, 6])
    expected, _ = by_beam(model, source, 3, max_length=5)
    source[1] = PAD
    tokens, scores = by_beam(model, source, 3, max_length=5)
    assert (tokens.dtype, scores.dtype) == ("int32", "float32")
    assert np.all(np.isfinite(scores))
    np.testing.assert_array_equal(tokens[0], expected[0])


def test_an_empty_batch():
    tokens, scores = decode(talkative(), np.zeros((0, 5), "int32"), n_best=4)
    assert (tokens.shape, scores.shape) == ((0, 4, LIMIT), (0, 4))


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"size": 0}, r"`size` must be at least 1\. Received: size=0\."),
        (
            {"normalization": "mean"},
            r"`normalization` must be one of gnmt, power, average, none\. Received: .*'mean'\.",
        ),
        (
            {"length_penalty": -0.1},
            r"`length_penalty` must be at least 0 and finite\. Received: length_penalty=-0\.1\.",
        ),
        (
            {"length_penalty": float("nan")},
            r"`length_penalty` must be at least 0 and finite\. Received: length_penalty=nan\.",
        ),
        (
            {"cache_length": 30},
            r"`cache_length` must be between 1 and 29\. Received: cache_length=30\.",
        ),
        (
            {"cache_length": 7, "min_length": 8},
            r"`min_length` must be between 1 and 7\. Received: min_length=8\.",
        ),
        (
            {"max_length": 7, "min_length": 8},
            r"`min_length` must be between 1 and 7\. Received: min_length=8\.",
        ),
    ],
)
def test_wrong_arguments_are_errors(wrong, message):
    with pytest.raises(ValueError, match=message):
        by_beam(talkative(), sources(), **wrong)
