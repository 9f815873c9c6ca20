"""Several tokens that end an output: searches emit `eos_id` for the most probable one."""

import dataclasses
import functools

import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow
from searching import by_beam, by_greedy
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

from keras_transformer import Beam, Greedy, LanguageModel, Transformer
from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding import (
    Constraints,
    Predictor,
    Sample,
    SearchOptions,
    Step,
    Vocabulary,
)
from keras_transformer.decoding.generation import Generation
from keras_transformer.decoding.scoring import score
from keras_transformer.models import LanguageModelConfig

LIMIT, FURTHER = 9, (5, 11)
ENDS = (EOS, *FURTHER)
SCORES = {"rtol": 0, "atol": 1e-4}


@functools.cache
def of_several_ends(kind):
    """Returns the talkative model or language model with further end tokens."""
    model = kind()
    changed = type(model)(dataclasses.replace(model.config, end_ids=FURTHER))
    changed.set_weights(model.get_weights())
    return changed


def with_one_end(source, target, last):
    """Returns log-probabilities in which that of the end is that of the most probable one."""
    rows = np.array(logits_of(talkative())(source, target), "float64")[:, -1]
    gains = reference.log_probabilities(rows)
    gains[:, EOS] = gains[:, list(ENDS)].max(-1)
    gains[:, list(FURTHER)] = -np.inf
    return gains


def test_greedy_search_ends_at_the_first_end_of_any_kind():
    source = sources()
    tokens, scores = by_greedy(of_several_ends(talkative), source, LIMIT)
    ended = set()
    for row, total, sentence in zip(tokens.numpy(), scores.numpy(), source, strict=True):
        prefix, expected = [BOS], 0.0
        while len(prefix) <= LIMIT and prefix[-1] not in ENDS:
            logits = np.array(logits_of(talkative())(sentence[None], np.array([prefix])))[:, -1]
            (gains,) = reference.log_probabilities(logits.astype("float64"))
            prefix.append(int(gains.argmax()))
            expected += gains.max()
        ended.add(prefix[-1])
        words = [EOS if word in ENDS else word for word in prefix[1:]]
        assert unpadded(row) == words
        np.testing.assert_allclose(total, expected, **SCORES)
    assert ended & {*FURTHER}, "the sentences end in one of the further tokens"


@pytest.mark.parametrize("size", [1, 4])
def test_a_beam(size):
    options = {"normalization": "power", "extra_length": None, "stopping": "score"}
    found = Beam(size, 1.0, **options)(
        of_several_ends(talkative), sources(), SearchOptions(n_best=size, cache_length=LIMIT)
    )
    normalize = functools.partial(reference.normalized, normalization="power", length_penalty=1.0)
    for b, source in enumerate(sources()):
        expected = reference.beam_by_score(
            with_one_end, source, size, normalize, LIMIT, BOS, EOS, excluded=(PAD, BOS)
        )
        assert [unpadded(row) for row in found.tokens[b].numpy()] == [row for _, row in expected]
        np.testing.assert_allclose(found.scores[b], [total for total, _ in expected], **SCORES)


@pytest.mark.parametrize("search", [Beam(3, normalization="none"), slow(Sample(seed=2))], ids=str)
def test_scores_are_those_of_a_single_pass(search):
    model = of_several_ends(talkative)
    found = search(model, sources(), SearchOptions(cache_length=LIMIT))
    _, totals = score(model, sources(), found.tokens[:, 0])
    np.testing.assert_allclose(totals, found.scores[:, 0], **SCORES)
    assert not np.isin(found.tokens, FURTHER).any()


@pytest.mark.parametrize(
    ("search", "cache_stages"),
    [
        pytest.param(by_greedy, None, id="by_greedy-None"),
        slow(by_beam, None, id="by_beam-None"),
    ],
)
def test_an_end_within_a_prompt_does_not_end_it(search, cache_stages):
    """Prompts of conversations contain the ends of earlier turns."""
    prompts = text_prompts()
    prompts[:, 1] = np.where(prompts[:, 2] != PAD, FURTHER[0], prompts[:, 1])
    outputs = search(
        of_several_ends(talkative_text), prompts, max_length=12, cache_stages=cache_stages
    )[0].numpy()
    lengths = []
    for prompt, row in zip(prompts.tolist(), outputs.reshape(len(prompts), -1), strict=True):
        begin = prompt[: prompt.index(EOS)]
        assert unpadded(row)[: len(begin)] == begin
        assert not np.isin(unpadded(row)[len(begin) :], FURTHER).any()
        lengths.append(len(unpadded(row)) - len(begin))
    assert max(lengths) > 1


@pytest.mark.slow
def test_where_the_end_is_forbidden_no_other_token_ends_an_output():
    banned = np.arange(19) == EOS
    for search in (Greedy(), Beam(3), Sample()):
        found = search(
            of_several_ends(talkative),
            sources(),
            SearchOptions(cache_length=LIMIT, constraints=Constraints(banned=banned)),
        )
        assert not np.isin(found.tokens, ENDS).any()
        assert (found.tokens[:, 0] != PAD).numpy().all()
    found = Beam(3, min_length=LIMIT)(
        of_several_ends(talkative), sources(), SearchOptions(cache_length=LIMIT)
    )
    assert not np.isin(found.tokens[:, 0, :-1], ENDS).any()


class Fixed(Predictor):
    """A predictor with the same logits everywhere."""

    def __init__(self, logits):
        super().__init__(Vocabulary(len(logits), 0, 1, 2, rules=OutputRules(end_ids=(4, 5))), 3)
        self.rows = tf.constant(logits, tf.float32)

    def begin(self, inputs, length, width=1):
        return ()

    def step(self, tokens, state, index):
        return Step(tf.broadcast_to(self.rows, [*tokens.shape, self.vocabulary.size]), state)


def test_samples_end_with_the_probability_of_all_ends():
    count, probabilities = 4000, np.array([1e-9, 1e-9, 0.1, 0.5, 0.15, 0.25])
    predictor = Fixed(np.log(probabilities))
    found = Sample(seed=3)(predictor, np.full([count, 1], 2), SearchOptions(cache_length=1))
    ends = (found.tokens[:, 0, 0].numpy() == 2).mean()
    assert abs(ends - 0.5) < 4 * 0.5 / count**0.5
    best = Greedy()(predictor, np.full([1, 1], 2), SearchOptions(cache_length=1))
    assert best.tokens.numpy().item() == 3
    np.testing.assert_allclose(np.unique(found.scores), np.log([0.25, 0.5]), rtol=1e-5)


@pytest.mark.parametrize("search", [Greedy(), Beam(2, length_penalty=0.0)])
@pytest.mark.parametrize("per_row", [False, True])
def test_a_banned_end_does_not_end_an_output(search, per_row):
    """Its probability is not that of `eos_id`: banned tokens keep their share."""
    predictor = Fixed(np.log([1e-9, 1e-9, 0.01, 0.36, 0.03, 0.6]))
    cut = ([3, 3], 0.36**2)  # a beam search returns hypotheses with an end first
    for banned, (tokens, probability) in (
        ([], ([2, 0], 0.6)),
        ([5], cut if isinstance(search, Greedy) else ([2, 0], 0.03)),
        ([3, 5], ([2, 0], 0.03)),
        ([3, 4, 5], ([2, 0], 0.01)),
    ):
        mask = np.isin(np.arange(6), banned)
        mask = np.stack([mask, ~mask])[:1] if per_row else mask
        rules = Constraints(banned=mask)
        found = search(
            predictor, np.full([1, 1], 2), SearchOptions(cache_length=2, constraints=rules)
        )
        assert found.tokens[0, 0].numpy().tolist() == tokens
        np.testing.assert_allclose(found.scores[0, 0], np.log(probability), rtol=1e-4)


def test_wrong_ids_are_refused():
    options = {"vocab_size": 19, "num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 1}
    for ids in ((19,), (-1,), ("a",)):
        with pytest.raises(ValueError, match="`end_ids` must be ids of the 19 tokens. Received"):
            LanguageModelConfig(end_ids=ids, **options)
    for ids in ((0,), (3,), (5, 5)):
        with pytest.raises(ValueError, match="`end_ids` must be distinct, without `pad_id` and"):
            LanguageModelConfig(end_ids=ids, **options)
    with pytest.raises(TypeError, match="`end_ids` must be a list of ids. Received: end_ids=7"):
        LanguageModelConfig(end_ids=7, **options)


def test_they_are_rules_of_a_run():
    rules = Generation.from_dict(Generation(rules=OutputRules(end_ids=(5, 11))).to_dict())
    for kind in (talkative, talkative_text):
        assert rules.configure(kind().config).head.rules.end_ids == (5, 11)
    for kind, known in ((Transformer, talkative), (LanguageModel, talkative_text)):
        config = of_several_ends(known).config
        assert kind(type(config).from_dict(config.to_dict())).config == config
