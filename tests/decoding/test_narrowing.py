"""Beams that narrow, and tokens that are never emitted but keep their probability."""

import dataclasses
import functools

import numpy as np
import pytest
import reference
from marks import slow
from searching import by_beam, by_greedy
from uncertain_models import BOS, EOS, PAD, logits_of, sources, talkative, unpadded

from keras_transformer import Beam, Greedy, Transformer
from keras_transformer.decoding import Constraints, Sample, SearchOptions
from keras_transformer.decoding.scoring import score

LIMIT, SILENT = 7, (5, 11, PAD, BOS)
SCORES = {"rtol": 0, "atol": 1e-4}


@functools.cache
def model_of(suppressed=()):
    model = talkative()
    changed = Transformer(dataclasses.replace(model.config, suppressed_ids=suppressed))
    changed.set_weights(model.get_weights())
    return changed


def gains(source, prefix):
    """Returns the log-probabilities of the next token, including tokens that are never emitted."""
    logits = logits_of(talkative())(source[None], np.array([prefix], "int32"))
    return reference.log_probabilities(np.array(logits, "float64")[:, -1])[0]


def narrowing_beam(source, size, exponent, suppressed):
    """Runs Marian's beam, which finished hypotheses leave; returns `size` (score, tokens)."""
    running, ended = [(0.0, [BOS])], []
    for length in range(1, LIMIT + 1):
        candidates = [
            (total + gain, [*prefix, token])
            for total, prefix in running
            for token, gain in enumerate(gains(source, prefix))
            if token not in {*suppressed, PAD, BOS}
        ]
        running = []
        for total, prefix in sorted(candidates, reverse=True)[: size - len(ended)]:
            over = prefix[-1] == EOS
            (ended if over else running).append(
                (total / length**exponent if over else total, prefix)
            )
        if not running:
            break
    ended += [(total / LIMIT**exponent, prefix) for total, prefix in running]
    return [(total, prefix[1:]) for total, prefix in sorted(ended, reverse=True)]


@pytest.mark.parametrize(
    ("size", "exponent", "suppressed"),
    [
        (3, 0.6, (5, 11, 0, 2)),
        slow(3, 0.6, ()),
        slow(1, 0.6, (5, 11, 0, 2)),
        slow(1, 0.0, (5, 11, 0, 2)),
        slow(6, 0.0, (5, 11, 0, 2)),
    ],
)
def test_a_beam_that_narrows(size, exponent, suppressed):
    search = Beam(size, exponent, normalization="power", extra_length=None, stopping="narrow")
    outcome = search(
        model_of(suppressed), sources(), SearchOptions(n_best=size, cache_length=LIMIT)
    )
    for source, rows, scores in zip(sources(), *map(np.array, outcome[:2]), strict=True):
        expected = narrowing_beam(source, size, exponent, suppressed)
        assert [unpadded(row) for row in rows] == [row for _, row in expected]
        np.testing.assert_allclose(scores, [total for total, _ in expected], **SCORES)


@pytest.mark.slow
def test_it_differs_from_a_beam_of_constant_width():
    outcomes = [
        by_beam(talkative(), sources(), 6, 6, max_length=LIMIT, stopping=stopping)[0].numpy()
        for stopping in ("narrow", "count")
    ]
    assert (outcomes[0] != outcomes[1]).any()


@pytest.mark.slow
def test_narrowing_beams_of_several_sizes_in_a_batch_equal_each_alone():
    source, sizes = sources(), [1, 2, 5, 3, 4]
    options = {"max_length": LIMIT, "stopping": "narrow"}
    tokens, scores = by_beam(talkative(), source, 5, 1, sizes=sizes, **options)
    for b, size in enumerate(sizes):
        alone, alone_scores = by_beam(talkative(), source[b : b + 1], size, 1, **options)
        np.testing.assert_array_equal(tokens[b], alone[0])
        np.testing.assert_allclose(scores[b], alone_scores[0], **SCORES)


def test_greedy_search_emits_no_suppressed_token_but_counts_its_probability():
    tokens, scores = by_greedy(model_of(SILENT), sources(), LIMIT)
    for source, row, total in zip(sources(), tokens.numpy(), scores.numpy(), strict=True):
        prefix, expected = [BOS], 0.0
        while len(prefix) <= LIMIT and prefix[-1] != EOS:
            of_next = gains(source, prefix)
            allowed = np.where(np.isin(np.arange(len(of_next)), SILENT), -np.inf, of_next)
            prefix.append(int(allowed.argmax()))
            expected += allowed.max()
        assert unpadded(row) == prefix[1:]
        np.testing.assert_allclose(total, expected, **SCORES)
    assert np.isin(by_greedy(model_of(), sources(), LIMIT)[0], SILENT[:2]).any()
    np.testing.assert_allclose(score(model_of(SILENT), sources(), tokens)[1], scores, **SCORES)


@pytest.mark.slow
def test_samples_and_constrained_searches_emit_no_suppressed_token():
    model = model_of(SILENT)
    rows = Sample(temperature=3.0)(
        model, np.repeat(sources(), 8, 0), SearchOptions(cache_length=LIMIT)
    ).tokens
    assert not np.isin(rows, SILENT[:2]).any()
    for search in (Greedy(), Beam(3)):
        banned = Constraints(banned=np.arange(19) == 7)
        rows = search(
            model, sources(), SearchOptions(cache_length=LIMIT, constraints=banned)
        ).tokens
        assert not np.isin(rows, [*SILENT[:2], 7]).any()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (
            (19,),
            r"`suppressed_ids` must be ids of the 19 target tokens\. Received: suppressed_ids=\(19",
        ),
        ((EOS,), r"`suppressed_ids` must not contain `eos_id`"),
    ],
)
def test_wrong_ids_are_reported(ids, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(talkative().config, suppressed_ids=ids)
