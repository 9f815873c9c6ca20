"""Constraints: a wide beam finds all allowed sentences of plain Python; and the other searches."""

import functools

import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import rows
from searching import by_beam, by_greedy, by_sample
from uncertain_models import BOS, EOS, PAD, logits_of, sources, talkative, unpadded

from keras_transformer.decoding import Constraints, Vocabulary
from keras_transformer.decoding.rules import Rules
from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.tensorflow_converter import convert_functions

LIMIT = 5
SCORES = {"rtol": 0, "atol": 1e-4}
EIGHT = 8  # words 1, 4, 5, 6 and 7, and the end
RULES = {
    "nothing": {},
    "prefix": {"prefix": [[4, 0], [5, 7], [0, 0]]},
    "prefix with a hole, longer than the output": {
        "prefix": [[0, 4, 0, 0, 0, 6, 6], [6, 0, 6, 0, 0, 4, 4], [1, 0, 0, 0, 5, 5, 5]]
    },
    "prefix that ends": {"prefix": [[EOS, 0], [4, EOS], [0, EOS]]},
    "prefix that begins": {"prefix": [[BOS, 0], [4, BOS], [0, 0]]},
    "banned": {"banned": [False, True, False, False, True, False, False, False]},
    "banned of each": {"banned": np.arange(24).reshape(3, 8) % 5 == 1},
    "the end is banned": {"banned": [False, True, False, True, True, False, False, False]},
    "all is banned": {"banned": [True] * 8},
    "all but one of the first": {"banned": [[True] * 7 + [False], [False] * 8, [True] * 8]},
    "no word twice": {"no_repeat_ngram": 1},
    "no two words twice": {"no_repeat_ngram": 2},
    "no three words twice": {"no_repeat_ngram": 3},
    "off": {"no_repeat_ngram": 0},
    "stuck": {
        "banned": [False, True, False, True, False, True, True, True],
        "no_repeat_ngram": 2,
    },
    "all of them": {
        "prefix": [[4, 4, 0], [5, 0, 5], [0, 4, EOS]],
        "banned": [False, False, False, False, True, True, False, False],
        "no_repeat_ngram": 2,
    },
}
CASES = [pytest.param(rules, id=name) for name, rules in RULES.items()]


@functools.cache
def model():
    """A model that repeats words more often than the model of the other tests."""
    return talkative(vocab_size=EIGHT)


@pytest.fixture(autouse=True, scope="module")
def built_outside_of_graphs():
    """Builds the model before any graph is traced, as its variables would belong to the graph."""
    model()


def batch():
    return sources(EIGHT)[:3]


def constraints_of(rules):
    return Constraints(**{name: tf.constant(value) for name, value in rules.items()})


def of_row(rules, b):
    """Returns the constraints of one sentence."""
    rows = {"prefix": np.ndim(rules.get("prefix", 0)) == 2}
    rows["banned"] = np.ndim(rules.get("banned", 0)) == 2
    return {
        name: np.array(value)[b : b + 1] if rows.get(name) else value
        for name, value in rules.items()
    }


def repeats(words, n):
    """Returns whether the last n words also occur earlier, overlapping or not."""
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return n > 0 and grams[-1:] != [] and grams[-1] in grams[:-1]


def next_tokens(rules, b, words, min_length=1):
    """Returns the tokens that may follow `words`: the rules in plain Python."""
    prefix = rules.get("prefix", [[]] * 3)[b]
    if len(words) < len(prefix) and prefix[len(words)] != PAD:
        return [prefix[len(words)]]
    banned = np.broadcast_to(rules.get("banned", [False] * EIGHT), [3, EIGHT])[b]
    n = rules.get("no_repeat_ngram", 0)
    allowed = [
        token
        for token in range(EIGHT)
        if token not in (PAD, BOS) and not banned[token] and not repeats([*words, token], n)
    ]
    if len(words) + 1 < min_length:
        allowed = [token for token in allowed if token != EOS]
    return allowed or [EOS]


def all_sentences(rules, b, min_length, words=()):
    """Returns every sentence that the rules allow, up to the limit."""
    for token in next_tokens(rules, b, words, min_length):
        longer = (*words, token)
        if token == EOS or len(longer) == LIMIT:
            yield longer
        else:
            yield from all_sentences(rules, b, min_length, longer)


@functools.cache
def gains(b):
    """Returns a look-up function from a prefix to the log-probabilities of the next word."""
    seen = {}

    def of(words):
        if words not in seen:
            target = np.array([[BOS, *words]], "int32")
            seen[words] = reference.log_probabilities(
                logits_of(model())(batch()[b : b + 1], target)
            )[0, -1]
        return seen[words]

    return of


def total(b, words):
    return sum(gains(b)(words[:i])[word] for i, word in enumerate(words))


def assert_is_greedy(outputs, rules):
    for b, (row, score) in enumerate(zip(*(values.numpy() for values in outputs), strict=True)):
        words = ()
        while len(words) < LIMIT and EOS not in words:
            choices = next_tokens(rules, b, words)
            words += (max(choices, key=lambda token: gains(b)(words)[token]),)
        assert tuple(row[: len(words)]) == words and np.all(row[len(words) :] == PAD)
        np.testing.assert_allclose(score, total(b, words), **SCORES)


def test_greedy_takes_the_best_allowed_token(rules=RULES["all of them"]):
    outputs = by_greedy(model(), batch(), LIMIT, constraints=constraints_of(rules))
    assert_is_greedy(outputs, rules)


@pytest.mark.parametrize(
    "rules",
    rows(
        RULES,
        ["all of them"],
        slow=[
            "prefix with a hole, longer than the output",
            "banned",
            "all is banned",
            "no two words twice",
            "stuck",
        ],
    ),
)
def test_a_beam_of_one_takes_the_best_allowed_token(rules):
    tokens, scores = by_beam(
        model(),
        batch(),
        1,
        normalization="none",
        max_length=LIMIT,
        constraints=constraints_of(rules),
    )
    assert_is_greedy((tokens[:, 0], scores[:, 0]), rules)


@pytest.mark.slow
def test_a_wide_beam_finds_every_allowed_sentence(rules=RULES["no word twice"], min_length=3):
    """Few words remain, so an exhaustive search gives the tokens and scores of all sentences."""
    options = {"min_length": min_length, "max_length": LIMIT, "normalization": "none"}
    width = 330
    tokens, scores = by_beam(
        model(), batch(), width, width, constraints=constraints_of(rules), **options
    )
    for b in range(3):
        sentences = set(all_sentences(rules, b, min_length))
        assert 1 <= len(sentences) <= width
        outputs = [tuple(unpadded(row)) for row in tokens[b].numpy() if row[0] != PAD]
        assert len(outputs) == len(sentences) and set(outputs) == sentences
        assert np.all(scores[b, len(outputs) :] == -1e9)
        expected = [total(b, words) for words in outputs]
        np.testing.assert_allclose(scores[b, : len(outputs)], expected, **SCORES)
        ended = [EOS in words for words in outputs]
        assert ended == sorted(ended, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    rows(
        RULES,
        [
            "prefix with a hole, longer than the output",
            "banned",
            "the end is banned",
            "no word twice",
            "off",
            "all of them",
        ],
    ),
)
def test_a_narrow_beam_equals_the_search_in_plain_python(rules):
    tokens, scores = by_beam(
        model(),
        batch(),
        3,
        3,
        normalization="none",
        min_length=2,
        max_length=LIMIT,
        constraints=constraints_of(rules),
    )
    for b in range(3):
        expected = plain_beam(rules, b, 3, min_length=2)
        outputs = [tuple(unpadded(row)) for row in tokens[b].numpy() if row[0] != PAD]
        assert outputs == [words for _, words in expected]
        np.testing.assert_allclose(
            scores[b, : len(outputs)], [score for score, _ in expected], **SCORES
        )


def plain_beam(rules, b, width, min_length):
    """Runs a beam search over the allowed words, without stopping early."""
    running, ended = [(0.0, ())], []
    for _ in range(LIMIT):
        candidates = [
            (score + gains(b)(words)[token], (*words, token))
            for score, words in running
            for token in next_tokens(rules, b, words, min_length)
        ]
        candidates.sort(reverse=True)
        ended += [candidate for candidate in candidates[:width] if candidate[1][-1] == EOS]
        running = [candidate for candidate in candidates if candidate[1][-1] != EOS][:width]
        if len(ended) >= width:
            break
    else:
        return (sorted(ended, reverse=True) + running)[:width]
    return sorted(ended, reverse=True)[:width]


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    rows(
        RULES,
        [
            "prefix with a hole, longer than the output",
            "banned",
            "the end is banned",
            "no word twice",
            "off",
            "all of them",
        ],
    ),
)
def test_samples_are_allowed_sentences(rules):
    """Many samples at a high temperature are all allowed and start with most allowed tokens."""
    count = 60
    seed = np.stack([np.zeros(3 * count), np.repeat(np.arange(count), 3)], 1).astype("int32")
    many = {
        name: np.tile(value, [count, 1]) if np.ndim(value) == 2 else value
        for name, value in rules.items()
    }
    tokens, scores = by_sample(
        model(),
        np.tile(batch(), [count, 1]),
        temperature=3.0,
        seed=seed,
        max_length=LIMIT,
        constraints=constraints_of(many),
    )
    for number, (row, score) in enumerate(zip(tokens.numpy(), scores.numpy(), strict=True)):
        b, words = number % 3, tuple(unpadded(row))
        for place, token in enumerate(words):
            assert token in next_tokens(rules, b, words[:place])
        assert words[-1] == EOS or len(words) == LIMIT
        np.testing.assert_allclose(score, total(b, words), **SCORES)
    for b in range(3):
        first = next_tokens(rules, b, ())
        assert len(np.unique(tokens[b::3, 0])) >= min(len(first), 4)


@pytest.mark.slow
def test_a_sentence_alone_is_the_same_sentence_in_a_batch(name="banned of each"):
    rules = RULES[name]
    for search in (by_greedy, functools.partial(by_beam, size=3)):
        tokens, scores = search(
            model(), batch(), max_length=LIMIT, constraints=constraints_of(rules)
        )
        for b in range(3):
            alone, score = search(
                model(),
                batch()[b : b + 1],
                max_length=LIMIT,
                constraints=constraints_of(of_row(rules, b)),
            )
            np.testing.assert_array_equal(alone[0], tokens[b])
            np.testing.assert_allclose(score[0], scores[b], **SCORES)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4])
def test_forbidden_repetitions_in_long_sentences(size):
    """Three words in random order: finds every earlier occurrence of the current n-gram."""
    words = np.random.default_rng(size).choice([4, 5, 6], [2, 3, 40]).astype("int32")
    vocabulary = Vocabulary(EIGHT, PAD, BOS, EOS)
    rules = Rules(Constraints(no_repeat_ngram=tf.constant(size)), vocabulary, 40)
    runs, bans = rules.start(2, 3), 0
    for index in range(40):
        tokens = np.where(np.arange(40) < index, words, PAD)
        logits = rules.apply(tf.zeros([2, 3, EIGHT]), tf.constant(tokens), runs, index)
        for b, n in np.ndindex(2, 3):
            prefix = words[b, n, :index].tolist()
            again = [token for token in (1, 4, 5, 6, 7) if repeats([*prefix, token], size)]
            forbidden = np.flatnonzero(logits[b, n] < 0)
            np.testing.assert_array_equal(forbidden, sorted([PAD, BOS, *again]))
            bans += len(again)
        runs = rules.follow(runs, tf.constant(tokens), words[:, :, index], index)
    assert (bans > 50) == (size > 0)


def searches():
    """Greedy search, a beam and a sample in one graph, with every constraint as an input."""

    def search(source, prefix, banned, no_repeat_ngram):
        constraints = Constraints(prefix, banned, no_repeat_ngram)
        options = {"max_length": LIMIT, "constraints": constraints}
        greedy, score = by_greedy(model(), source, **options)
        beam, scores = by_beam(model(), source, 3, **options)
        return {"greedy": greedy, "score": score, "beam": beam[:, 0], "scores": scores[:, 0]}

    return search


def inputs(name):
    rules = {
        "prefix": np.zeros([3, 2], "int32"),
        "banned": np.zeros([3, EIGHT], bool),
        "no_repeat_ngram": 0,
        **RULES[name],
    }
    prefix = np.array(rules["prefix"], "int32")
    return {
        "prefix": np.pad(prefix, [(0, 0), (0, 7 - prefix.shape[1])]),
        "banned": np.array(np.broadcast_to(rules["banned"], [3, EIGHT])),
        "no_repeat_ngram": np.int32(rules["no_repeat_ngram"]),
    }


def assert_same(outputs, expected):
    for name in ("greedy", "beam"):
        np.testing.assert_array_equal(outputs[name], expected[name])
    for name in ("score", "scores"):
        np.testing.assert_allclose(outputs[name], expected[name], **SCORES)


CHANGES = ["all of them", "banned of each", "no word twice", "nothing"]


@pytest.mark.long
@pytest.mark.slow
def test_compiled_is_eager_and_constraints_are_inputs(jit_compile=True):
    traces = []

    @tf.function(jit_compile=jit_compile)
    def search(source, prefix, banned, no_repeat_ngram):
        traces.append(1)
        return searches()(source, prefix, banned, no_repeat_ngram)

    for name in CHANGES:
        given = {key: tf.constant(value) for key, value in inputs(name).items()}
        assert_same(search(tf.constant(batch()), **given), searches()(batch(), **given))
    assert len(traces) == 1


@pytest.mark.long
@pytest.mark.slow
def test_litert_needs_builtin_operators_only_and_returns_the_same():
    specs = {
        key: tf.TensorSpec(value.shape, value.dtype, key)
        for key, value in inputs("nothing").items()
    }
    function = tf.function(searches(), autograph=False).get_concrete_function(
        tf.TensorSpec(batch().shape, tf.int32, "source"), **specs
    )
    content = convert_functions(model(), {"search": function})
    run = load_interpreter()(model_content=content).get_signature_runner("search")
    for name in CHANGES:
        expected = searches()(batch(), **{k: tf.constant(v) for k, v in inputs(name).items()})
        assert_same(run(source=batch(), **inputs(name)), expected)


@pytest.mark.parametrize(
    "search",
    [
        by_greedy,
        *(pytest.param(s, marks=pytest.mark.slow) for s in (by_beam, by_sample)),
    ],
)
def test_a_ragged_prefix_is_padded_and_has_no_end(search):
    """`Tokenizer.encode` returns ragged rows and appends the end token to each."""
    ragged = tf.ragged.constant([[4, EOS], [], [5, 7, 6, EOS]], dtype="int32")
    padded = tf.constant([[4, 0, 0], [0, 0, 0], [5, 7, 6]])
    outputs, expected = (
        search(model(), batch(), max_length=LIMIT, constraints=Constraints(prefix=prefix))
        for prefix in (ragged, padded)
    )
    for received, right in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(received, right)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (
            {"prefix": tf.ragged.constant([[[4], []]])},
            r"`prefix` must .* \(1, None, None\), int32\.",
        ),
        ({"prefix": [4, 5]}, r"`prefix` must be token ids, .* Received: shape \(2,\), int32\."),
        ({"prefix": [[4.0]]}, r"`prefix` must be .* Received: shape \(1, 1\), float32\."),
        ({"banned": [True] * 7}, r"`banned` must be booleans, .* V = 8\. .* shape \(7,\), bool\."),
        ({"banned": [0] * 8}, r"`banned` must be .* Received: shape \(8,\), int32\."),
        ({"no_repeat_ngram": -1}, r"`no_repeat_ngram` must be at least 0\. Received: .*=-1\."),
    ],
)
@pytest.mark.parametrize("search", [by_greedy, by_beam, by_sample])
def test_wrong_constraints_are_errors(search, wrong, message):
    with pytest.raises(ValueError, match=message):
        search(model(), batch(), constraints=Constraints(**wrong))
