"""Tokens that a model never emits, a forced end, and beams that stop by score."""

import dataclasses
import functools

import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow
from searching import by_beam, by_greedy
from uncertain_models import BOS, EOS, PAD, logits_of, sources, talkative, unpadded

from keras_transformer import Beam, Greedy, Transformer
from keras_transformer.decoding import Constraints, Sample, SearchOptions
from keras_transformer.decoding.encoder_decoder import EncoderDecoder
from keras_transformer.decoding.scoring import score

LIMIT, BANNED = 7, (5, 11, PAD)
SCORES = {"rtol": 0, "atol": 1e-4}


@functools.cache
def model_of(banned=(), forced=None):
    """Returns the talkative model with its own rules for outputs."""
    model = talkative()
    fields = {"banned_ids": banned, "forced_eos_id": forced}
    changed = Transformer(dataclasses.replace(model.config, **fields))
    changed.set_weights(model.get_weights())
    return changed


def log_probabilities_of(banned=(), forced=None):
    """A second implementation of the talkative model's log-probabilities under the rules."""
    logits = logits_of(talkative())

    def of_next(source, target, last):
        rows = np.array(logits(source, target), "float64")[:, -1]
        if last and forced is not None:
            return np.where(np.arange(rows.shape[1]) == forced, 0 * rows, -np.inf)
        rows[:, list(banned)] = -np.inf
        return reference.log_probabilities(rows)

    return of_next


def searched(search, model, **options):
    outcome = search(model, sources(), SearchOptions(cache_length=LIMIT, **options))
    return outcome.tokens.numpy(), outcome.scores.numpy()


@pytest.mark.parametrize(
    ("banned", "forced"), [slow((), None), slow((5, 11, 0), None), ((5, 11, 0), 9)]
)
def test_greedy_search(banned, forced):
    tokens, scores = searched(Greedy(), model_of(banned, forced))
    of_next = log_probabilities_of(banned, forced)
    for row, total, source in zip(tokens[:, 0], scores[:, 0], sources(), strict=True):
        prefix, expected = [BOS], 0.0
        while len(prefix) <= LIMIT and prefix[-1] != EOS:
            (gains,) = of_next(source[None], np.array([prefix]), len(prefix) == LIMIT)
            prefix.append(int(gains.argmax()))
            expected += gains.max()
        assert unpadded(row) == prefix[1:]
        np.testing.assert_allclose(total, expected, **SCORES)


def test_the_test_sentences_show_every_rule():
    free, _ = searched(Greedy(), model_of())
    assert np.isin(free, BANNED[:2]).any()
    ends = [unpadded(row)[-1] == EOS for row in free[:, 0]]
    assert any(ends) and not all(ends)


@pytest.mark.parametrize(
    ("banned", "forced", "exponent", "size"),
    [slow((5, 11, 0), 3, 2.0, 1), ((5, 11, 0), 3, 2.0, 5), slow((5, 11, 0), 9, 2.0, 5)],
)
def test_a_beam_that_stops_by_score(banned, forced, exponent, size):
    search = Beam(size, exponent, normalization="power", extra_length=None, stopping="score")
    tokens, scores = searched(search, model_of(banned, forced), n_best=size)
    normalize = functools.partial(
        reference.normalized, normalization="power", length_penalty=exponent
    )
    for b, source in enumerate(sources()):
        expected = reference.beam_by_score(
            log_probabilities_of(banned, forced), source, size, normalize, LIMIT, BOS, EOS,
            excluded=(PAD, BOS),
        )  # fmt: skip
        assert [unpadded(row) for row in tokens[b]] == [row for _, row in expected]
        np.testing.assert_allclose(scores[b], [total for total, _ in expected], **SCORES)


@pytest.mark.slow
def test_the_best_of_a_beam_does_not_depend_on_the_number_returned():
    search = Beam(4, 1.0, normalization="power", stopping="score")
    every, scores = searched(search, model_of(BANNED, EOS), n_best=4)
    best, best_scores = searched(search, model_of(BANNED, EOS))
    np.testing.assert_array_equal(best[:, 0], every[:, 0])
    np.testing.assert_array_equal(best_scores[:, 0], scores[:, 0])


@pytest.mark.slow
def test_beams_of_several_sizes_in_a_batch_stop_as_each_alone_does():
    source, sizes = sources(), [1, 2, 5, 3, 4]
    options = {"normalization": "power", "length_penalty": 1.0, "stopping": "score"}
    tokens, scores = by_beam(
        model_of(BANNED, EOS), source, 5, 1, max_length=LIMIT, sizes=sizes, **options
    )
    for b, size in enumerate(sizes):
        alone, alone_scores = by_beam(
            model_of(BANNED, EOS), source[b : b + 1], size, 1, max_length=LIMIT, **options
        )
        np.testing.assert_array_equal(tokens[b], alone[0])
        np.testing.assert_allclose(scores[b], alone_scores[0], **SCORES)


@pytest.mark.slow
def test_power_with_the_exponent_1_is_the_average():
    options = {"max_length": LIMIT, "size": 3}
    powers = by_beam(talkative(), sources(), normalization="power", length_penalty=1.0, **options)
    averages = by_beam(talkative(), sources(), normalization="average", **options)
    for one, other in zip(powers, averages, strict=True):
        np.testing.assert_allclose(one, other, **SCORES)


def test_every_returned_output_ends_where_an_end_is_forced():
    for search in (Beam(3), Beam(3, extra_length=0)):
        tokens, scores = searched(search, model_of(BANNED, EOS), n_best=3)
        assert (scores > -1e8).all()
        assert all(unpadded(row)[-1] == EOS for rows in tokens for row in rows)
        assert not np.isin(tokens, BANNED[:2]).any()


def test_samples_contain_no_banned_token_and_end():
    model = model_of(BANNED, EOS)
    outcome = Sample(temperature=3.0)(
        model, np.repeat(sources(), 8, 0), SearchOptions(cache_length=LIMIT)
    )
    rows = [unpadded(row) for row in outcome.tokens.numpy()[:, 0]]
    assert all(row[-1] == EOS and not set(row) & set(BANNED) for row in rows)
    assert len({tuple(row) for row in rows}) > 20


def test_a_score_redistributes_the_probability_of_banned_tokens():
    model = model_of(BANNED)
    tokens, scores = by_greedy(model, sources(), LIMIT)
    np.testing.assert_allclose(score(model, sources(), tokens)[1], scores, **SCORES)


def test_a_prefix_may_contain_a_banned_token():
    constraints = Constraints(prefix=np.array([[5, 8]] * 5))
    tokens, _ = searched(Greedy(), model_of(BANNED, EOS), constraints=constraints)
    assert (tokens[:, 0, :2] == [5, 8]).all() and not np.isin(tokens[:, 0, 2:], BANNED[:2]).any()


def test_a_beam_still_ranks_after_a_banned_prefix():
    """The continuation scores as after any prefix; three such tokens once left no hypothesis."""
    prefix = np.array([[5, 11, 5]] * 5)
    search = Beam(3, normalization="none", extra_length=None)
    rules = {"constraints": Constraints(prefix=prefix), "token_scores": True}
    found = search(
        model_of(BANNED), sources(), SearchOptions(n_best=3, cache_length=LIMIT, **rules)
    )
    assert (found.tokens.numpy()[:, 0, :3] == prefix).all()
    gains = found.token_scores.numpy()[:, :, 3:].sum(axis=2)  # [B, M]
    assert (np.diff(found.scores.numpy()) < 0).all() and (np.diff(gains) < 1e-3).all()
    assert np.abs(np.diff(found.scores.numpy()) - np.diff(gains)).max() < 1e-2


@pytest.mark.parametrize("ids", [3, None, "34"])
def test_ids_must_be_a_list(ids):
    with pytest.raises(TypeError, match=r"^`banned_ids` must be a list of ids\. Received: "):
        dataclasses.replace(talkative().config, banned_ids=ids)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"banned_ids": (19,)}, r"`banned_ids` must be ids of the 19 target tokens\. Received: "),
        ({"banned_ids": ("a",)}, r"`banned_ids` must be ids"),
        ({"banned_ids": (4, EOS)}, r"`banned_ids` must not contain `eos_id`.* eos_id=3\."),
        (
            {"forced_eos_id": 19},
            r"`forced_eos_id` must be the id of .* 19 .* forced_eos_id=19\.",
        ),
        ({"forced_eos_id": PAD}, r"`forced_eos_id` must be .*except `pad_id`, or None"),
        ({"forced_eos_id": True}, r"`forced_eos_id` must be"),
        ({"forced_eos_id": BOS}, r"`forced_eos_id` must be .* neither `bos_id`.* forced_eos_id=2"),
        (
            {"forced_eos_id": 9, "suppressed_ids": (9,)},
            r"`forced_eos_id` must be .* `suppressed_ids`\.",
        ),
    ],
)
def test_wrong_rules_are_reported(fields, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(talkative().config, **fields)


def test_a_wrong_stopping_rule_is_reported():
    with pytest.raises(
        ValueError, match=r"`stopping` must be one of count, score, narrow\. Received: "
    ):
        Beam(stopping="never")
    with pytest.raises(
        ValueError, match=r"`stopping` must be one of count, score, narrow\. Received: "
    ):
        by_beam(talkative(), sources(), stopping="never")


def test_the_rules_are_saved_with_the_model(tmp_path):
    import keras

    model = model_of(BANNED, EOS)
    model.save(tmp_path / "m.keras")
    assert keras.saving.load_model(tmp_path / "m.keras").config == model.config


def test_the_score_of_an_output_with_a_forced_end_is_the_score_of_its_search():
    config = dataclasses.replace(talkative().config, forced_eos_id=EOS)
    model = Transformer(config)
    model.set_weights(talkative().get_weights())
    predictor = EncoderDecoder(model)
    predictor.max_length = LIMIT
    tokens, scores = by_greedy(predictor, sources())
    full = tokens.numpy()[:, -1] == EOS
    assert full.any(), "one of them has the longest length"
    np.testing.assert_allclose(score(predictor, sources(), tokens)[1], scores, **SCORES)


def rules_of(**rules):
    """Returns the talkative model with further rules for its outputs."""
    model = Transformer(dataclasses.replace(talkative().config, **rules))
    model.set_weights(talkative().get_weights())
    return model


@pytest.mark.slow
def test_a_forced_first_token_and_ngrams_that_do_not_repeat():
    """Rules of a model equal the constraints of a search; a forced token has probability 1."""
    model, free = rules_of(forced_bos_id=9, no_repeat_ngram=2), talkative()
    source = tf.constant(sources())
    prefix = tf.fill([source.shape[0], 1], 9)
    constraints = Constraints(prefix=prefix, no_repeat_ngram=2)
    tokens, scores = searched(Greedy(), model)
    expected, _ = searched(Greedy(), free, constraints=constraints)
    np.testing.assert_array_equal(tokens, expected)
    assert (tokens[:, 0, 0] == 9).all()
    for row in tokens[:, 0]:
        pairs = [*zip(row[row != PAD][:-1], row[row != PAD][1:], strict=True)]
        assert len({*pairs}) == len(pairs)
    gains, total = score(model, source, tokens[:, 0])
    np.testing.assert_array_equal(gains[:, 0], 0)
    np.testing.assert_allclose(scores[:, 0], total, **SCORES)
    unforced, _ = score(free, source, tokens[:, 0])
    np.testing.assert_allclose(gains[:, 1:], unforced[:, 1:], **SCORES)
    found, _ = searched(Beam(3, normalization="none", extra_length=None), model)
    assert (found[:, 0, 0] == 9).all()


@pytest.mark.parametrize(
    "search",
    [slow(Greedy(2)), slow(Beam(1, max_length=2, extra_length=None)), Sample(0.0, max_length=2)],
)
@pytest.mark.parametrize(
    "rules", [{"forced_bos_id": 9}, slow({"language_codes": "before"})], ids=str
)
def test_a_token_that_begins_every_output_is_not_new(rules, search):
    model = rules_of(**rules)
    tokens, _ = searched(search, model)
    whole, _ = searched(Greedy(), model)
    np.testing.assert_array_equal(tokens[:, 0, :3], whole[:, 0, :3])
    assert np.any(whole[:, 0, 3:]) and not np.any(tokens[:, 0, 3:])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"forced_bos_id": PAD}, r"`forced_bos_id` must be .*except `pad_id`, or None"),
        ({"no_repeat_ngram": -1}, r"`no_repeat_ngram` must be at least 0"),
        ({"forced_bos_id": 9, "language_codes": "before"}, r"`forced_bos_id` must be None with"),
    ],
)
def test_wrong_rules(rules, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(talkative().config, **rules)
