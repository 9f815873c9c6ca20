"""The limit of an output that depends on the length of its source, as in Marian."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from searching import by_beam, by_greedy
from support import small_config
from uncertain_models import (
    EOS,
    sources,
    talkative,
    talkative_text,
    text_prompts,
    unpadded,
)

from keras_transformer import Beam, Greedy, Transformer
from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding import (
    Ensemble,
    Sample,
    SearchOptions,
    Shortlist,
    Shortlisted,
    Vocabulary,
)
from keras_transformer.decoding.generation import Generation

LIMIT = 9
LENGTHS = [6, 10, 3, 2, 13]  # of `sources`, the end included
SEARCHES = {
    "greedy": Greedy(),
    "greedy_with_limit": Greedy(7),
    "beam": Beam(3, 0.6, extra_length=None),
    "narrowing": Beam(3, 0.6, "power", extra_length=None, stopping="narrow"),
    "by_score": Beam(3, 0.6, extra_length=None, stopping="score"),
    "beam_with_limit": Beam(3, 0.6, extra_length=1, max_length=7),
    "sample": Sample(temperature=0.7, seed=3),
}


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@functools.cache
def restricted(factor):
    model = Transformer(dataclasses.replace(talkative().config, max_length_ratio=factor))
    model.set_weights(talkative().get_weights())
    return model


def expected(factor):
    """Returns the limits of the sources; Marian computes them in float32."""
    return [
        max(1, min(LIMIT, int(np.ceil(np.float32(factor) * np.float32(length)))))
        for length in LENGTHS
    ]


@pytest.mark.parametrize(
    ("decode", "factor"), [(by_greedy, 0.5), slow(by_beam, 1.1), slow(by_beam, 0.5)]
)
def test_each_output_has_the_limit_of_its_source(decode, factor):
    limits = expected(factor)
    assert len({*limits}) > 2
    tokens, scores = decode(restricted(factor), sources(), max_length=LIMIT)
    given, right = decode(
        talkative(), sources(), max_length=tf.constant(limits), cache_length=LIMIT
    )
    np.testing.assert_array_equal(tokens, given)
    np.testing.assert_array_equal(scores, right)
    rows = tokens.numpy() if tokens.shape.rank == 2 else tokens.numpy()[:, 0]
    lengths = [len(unpadded(row)) for row in rows]
    assert all(length <= limit for length, limit in zip(lengths, limits, strict=True))
    assert any(row[length - 1] != EOS for row, length in zip(rows, lengths, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name if name == "sample" else slow(name) for name in SEARCHES])
def test_the_smaller_limit_holds(name):
    found = SEARCHES[name](restricted(0.5), sources(), SearchOptions(cache_length=LIMIT))
    whole = SEARCHES[name](talkative(), sources(), SearchOptions(cache_length=LIMIT))
    counts, longest = (np.count_nonzero(each.tokens[:, 0], axis=1) for each in (found, whole))
    assert (counts <= expected(0.5)).all() and (counts < longest).any()


def limits_by_loops(ratio, lengths, extra=0, longest=LIMIT):
    """Multiplies in float32 as Marian does, one length at a time, and rounds up."""
    products = [int(np.ceil(np.float32(ratio) * np.float32(length))) for length in lengths]
    return [min(longest, max(1, product) + extra) for product in products]


@pytest.mark.parametrize(
    ("search", "extra"),
    [
        (Greedy(max_length_ratio=0.5), 0),
        (Sample(1.3, seed=3, max_length_ratio=0.5), 0),
        (Beam(2, extra_length=None, max_length_ratio=0.5), 0),
        slow(Beam(2, extra_length=1, max_length_ratio=0.35), 1),
    ],
)
def test_a_search_has_a_ratio_of_its_own(search, extra):
    """Each sentence gets the result of the same search with its limit as `max_length`."""
    limits = limits_by_loops(search.max_length_ratio, LENGTHS, extra)
    assert len({*limits}) > 2
    assert [int(search.limit(length, LIMIT)) for length in LENGTHS] == limits
    options = SearchOptions(cache_length=LIMIT)
    found = search(talkative(), sources(), options)
    changes = {"max_length": tf.constant(limits), "max_length_ratio": None}
    changes |= {"extra_length": None} if isinstance(search, Beam) else {}
    right = dataclasses.replace(search, **changes)(talkative(), sources(), options)
    np.testing.assert_array_equal(found.tokens, right.tokens)
    np.testing.assert_array_equal(found.scores, right.scores)
    assert not found.complete.numpy().all()
    values = [tf.convert_to_tensor(value) for value in search.values(range(len(LENGTHS)))]
    traced = search.kind.with_values(values)  # as in the graph of all searches of its kind
    assert [int(traced.limit(length, LIMIT)) for length in LENGTHS] == limits


def test_where_a_ratio_has_no_effect_it_is_refused():
    ratio = Greedy(max_length_ratio=2.0)
    with pytest.raises(ValueError, match="`max_length_ratio` needs a source in tokens"):
        ratio(talkative_text(), text_prompts())
    with pytest.raises(ValueError, match=r"at most that of the model, .* Received: 2\.0 and 0\.5"):
        ratio(restricted(0.5), sources(), SearchOptions(cache_length=LIMIT))
    with pytest.raises(ValueError, match="`max_length_ratio` must be at least 0.1 and finite"):
        Sample(max_length_ratio=0.01)


def test_an_output_does_not_depend_on_its_batch():
    together = Greedy()(restricted(0.5), sources(), SearchOptions(cache_length=LIMIT))
    for number, source in [*enumerate(sources())][2:4]:
        alone = Greedy()(restricted(0.5), source[None], SearchOptions(cache_length=LIMIT))
        np.testing.assert_array_equal(together.tokens[number], alone.tokens[0])


@pytest.mark.slow
def test_with_an_ensemble_or_a_shortlist():
    model, every = restricted(0.5), range(19)
    shortlist = Shortlist.from_counts([[word, word, 1] for word in every], 19, first=19)
    right = Greedy()(model, sources(), SearchOptions(cache_length=LIMIT)).tokens
    for one in (Ensemble([model, model]), Shortlisted(model, shortlist)):
        found = Greedy()(one, sources(), SearchOptions(cache_length=LIMIT))
        np.testing.assert_array_equal(found.tokens, right)


def test_a_shortlist_with_fewer_candidates_than_tokens():
    large = Transformer(small_config(vocab_size=64, max_length_ratio=0.5))
    shortlist = Shortlist.from_counts([[7, 20, 3]], 64, first=8)
    found = Greedy()(
        Shortlisted(large, shortlist, (16,)), sources(), SearchOptions(cache_length=LIMIT)
    )
    assert (np.count_nonzero(found.tokens[:, 0], axis=1) <= expected(0.5)).all()


def test_no_number_is_rounded_up_twice():
    """1.1 * 10 is 11 in float32, though 1.1 is slightly larger there."""
    vocabulary = Vocabulary(9, 0, 1, 2, rules=OutputRules(max_length_ratio=1.1))
    limits = vocabulary.limits(tf.range(41), 40).numpy().tolist()
    assert limits[10] == 11 and limits[:3] == [1, 2, 3] and limits[40] == 40


@pytest.mark.parametrize("factor", [0, 0.05, float("inf"), float("nan"), -1])
def test_a_wrong_factor_is_refused(factor):
    with pytest.raises(
        ValueError, match="`max_length_ratio` must be a finite number of at least 0.1"
    ):
        small_config(max_length_ratio=factor)


def test_a_factor_of_another_type_is_refused():
    with pytest.raises(TypeError, match="`max_length_ratio` must be a number. Received: .*'3'"):
        small_config(max_length_ratio="3")


def test_the_rules_of_a_run_hold_it():
    rules = Generation.from_dict(Generation(rules=OutputRules(max_length_ratio=3.0)).to_dict())
    assert rules.configure(small_config()).head.rules.max_length_ratio == 3.0
