"""The penalty of repeated tokens against searches in NumPy, float64, that read whole outputs."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from searching import Wide, outputs
from uncertain_models import (
    BOS,
    EOS,
    PAD,
    logits_of,
    sources,
    talkative,
    talkative_text,
    text_prompts,
    unpadded,
)

from keras_transformer import Beam, Greedy
from keras_transformer.decoding import Constraints, Sample, SearchOptions, Vocabulary
from keras_transformer.decoding.repetition import Repetition

LIMIT = 7
FEW = [1, 3, 4]  # of the sources and prompts
SCORES = {"rtol": 0, "atol": 1e-4}


def penalised(values, seen, penalty):
    """Divides positive values of seen tokens and multiplies negative ones, one by one."""
    values = np.array(values, "float64")
    for token in {*seen}:
        positive = values[token] > 0
        values[token] = values[token] / penalty if positive else values[token] * penalty
    return values


def log_softmax(logits):
    logits = np.array(logits, "float64")
    return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


def greedy(next_logits, begin, penalty, limit):
    """Returns the tokens and their log-probability; `begin` is all that the decoder has read."""
    read, total = list(begin), 0.0
    for _ in range(limit):
        logits = next_logits(read)
        token = int(penalised(logits, read, penalty).argmax())
        total += log_softmax(logits)[token]
        read.append(token)
        if token == EOS:
            break
    return read[len(begin) :], total


def of_translation(source):
    return lambda read: logits_of(talkative())(source[None], [read])[0, -1]


@pytest.mark.parametrize("penalty", [1.8, slow(0.4)])
def test_greedy_search_penalises_logits_and_scores_are_the_models_own(penalty):
    rows = sources()[FEW]
    tokens, scores = outputs(
        Greedy(LIMIT, repetition_penalty=penalty)(talkative(), rows), squeezed=True
    )
    changed = False
    for row, score, source in zip(tokens.numpy(), scores, rows, strict=True):
        expected, total = greedy(of_translation(source), [BOS], penalty, LIMIT)
        changed |= expected != greedy(of_translation(source), [BOS], 1.0, LIMIT)[0]
        assert unpadded(row) == expected
        np.testing.assert_allclose(score, total, **SCORES)
    assert changed


def test_the_tokens_of_a_prompt_count():
    """Prompts of different lengths in one batch; the forced tokens themselves cost nothing."""
    model, prompts = talkative_text(), text_prompts()[FEW]
    found = Greedy(LIMIT, repetition_penalty=2.5)(model, prompts, SearchOptions(cache_length=15))
    traced = tf.function(
        lambda read: model(read, training=False)[0, -1],
        input_signature=[tf.TensorSpec([1, None], tf.int32)],
    )
    changed = False
    for row, score, prompt in zip(found.tokens.numpy(), found.scores, prompts, strict=True):
        words = [token for token in prompt.tolist() if token not in (PAD, EOS)]

        def next_logits(read):
            return traced(tf.constant([read]))

        expected, total = greedy(next_logits, [BOS, *words], 2.5, LIMIT)
        changed |= expected != greedy(next_logits, [BOS, *words], 1.0, LIMIT)[0]
        assert unpadded(row[0]) == [*words, *expected]
        np.testing.assert_allclose(score[0], total, **SCORES)
    assert changed


def test_a_beam_penalises_log_probabilities_as_exhaustive_search_does():
    """Three words and the end, at most four tokens: 40 finished sentences."""
    model, source, penalty = talkative(vocab_size=6), sources(6)[:2], 1.7
    beam = Wide(
        121, normalization="none", extra_length=None, max_length=4, repetition_penalty=penalty
    )
    found = beam(model, source, SearchOptions(n_best=121))
    words = [token for token in range(6) if token not in (PAD, BOS, EOS)]
    endings = [[*w, EOS] for n in range(4) for w in itertools.product(words, repeat=n)]
    for row, tokens, scores in zip(source, found.tokens.numpy(), found.scores, strict=True):
        expected = []
        for ending in endings:
            read = [BOS, *ending]
            logits = logits_of(model)(row[None], [read[:-1]])[0]
            total = 0.0
            for place, token in enumerate(ending):
                log_probabilities = log_softmax(logits[place])
                seen = penalised(log_probabilities, read[: place + 1], penalty)
                total += seen[token]
            expected.append((total, ending))
        expected.sort(key=lambda pair: -pair[0])
        assert [unpadded(output) for output in tokens[:40]] == [ending for _, ending in expected]
        np.testing.assert_allclose(scores[:40], [total for total, _ in expected], **SCORES)


def test_each_sentence_has_its_own_penalty_in_a_graph_and_alone():
    penalties = [1.0, 2.0, 1.0, 1.4, 0.7]
    searches = (
        Greedy(LIMIT, repetition_penalty=3.0),
        Beam(3, max_length=4, repetition_penalty=3.0),
        Sample(seed=3, max_length=LIMIT, repetition_penalty=3.0),
    )
    for search in searches[:2]:
        given = tf.constant(penalties)
        together = dataclasses.replace(search, repetition_penalty=given)(talkative(), sources())
        for number in (1, 4):
            alone = dataclasses.replace(search, repetition_penalty=penalties[number])(
                talkative(), sources()[number : number + 1, : np.count_nonzero(sources()[number])]
            )
            np.testing.assert_array_equal(together.tokens[number], alone.tokens[0])
            np.testing.assert_allclose(together.scores[number], alone.scores[0], **SCORES)
    for search in searches:
        assert "repetition_penalty" in [spec.name for spec in search.inputs]
        assert search.kind == dataclasses.replace(search, repetition_penalty=1.7).kind
    assert not [spec for spec in Greedy().inputs if spec.name == "repetition_penalty"]


def test_sampling_draws_from_the_penalised_distribution():
    """At a temperature of 0 it is greedy search among words; the score is the model's own."""
    options = SearchOptions(constraints=Constraints())
    rows = sources()[FEW]
    found = Sample(0.0, max_length=LIMIT, repetition_penalty=1.8)(talkative(), rows)
    right = Greedy(LIMIT, repetition_penalty=1.8)(talkative(), rows, options)
    np.testing.assert_array_equal(found.tokens, right.tokens)
    np.testing.assert_allclose(found.scores, right.scores, **SCORES)


def test_other_rules_come_after_the_penalty():
    """A token that is forbidden stays so, however small the penalty is."""
    allowed = np.ones(19, bool)
    allowed[[5, 7, 9]] = False
    options = SearchOptions(constraints=Constraints(banned=~allowed))
    for search in (
        Greedy(4, repetition_penalty=1e-4),
        Beam(2, max_length=4, repetition_penalty=1e-4),
    ):
        tokens = search(talkative(), sources(), options).tokens.numpy()
        assert not np.isin(tokens, [5, 7, 9]).any()
    vocabulary = Vocabulary.of(talkative().config)
    logits = tf.constant([[[-1e9, 2.0, -3.0, 0.0] + [1.0] * 15]])
    tokens = tf.constant([[[1, 2, 0, 4]]])
    penalty = Repetition(0.1, vocabulary)
    values = penalty.of_logits(logits, penalty.seen(tokens, tf.range(4) < 3))[0, 0]
    np.testing.assert_allclose(values[:5], [-1e9, 20.0, -0.3, 0.0, 1.0], rtol=1e-6)


@pytest.mark.parametrize("penalty", [0, -1.0, float("nan"), "2"])
def test_a_wrong_penalty_is_refused(penalty):
    for kind in (Greedy, Beam, Sample):
        with pytest.raises(ValueError, match="`repetition_penalty` must be above 0 and finite"):
            kind(repetition_penalty=penalty)
