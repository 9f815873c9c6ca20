"""Searches as values: they return what the functions return, and know their own limits."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from searching import by_beam, by_greedy, by_sample
from uncertain_models import EOS, sources, talkative

from keras_transformer import Beam, Greedy
from keras_transformer.decoding import Found, Sample, SearchOptions
from keras_transformer.decoding.stored import as_dict, from_dict

LIMIT = 13


@pytest.fixture(scope="module")
def model():
    return talkative()


@pytest.fixture(scope="module")
def lengths():
    return np.count_nonzero(sources(), axis=1)


def assert_found(outputs, tokens, scores):
    """Checks a `Found` against tokens and scores with an axis for the outputs of a sentence."""
    assert isinstance(outputs, Found)
    np.testing.assert_array_equal(outputs.tokens, tokens)
    np.testing.assert_allclose(outputs.scores, scores, atol=1e-5)


@pytest.mark.slow
def test_greedy_search_equals_the_function(model):
    outputs = Greedy()(model, sources(), SearchOptions(cache_length=LIMIT))
    tokens, scores = by_greedy(model, sources(), LIMIT)
    assert_found(outputs, tokens[:, None], scores[:, None])
    assert outputs.token_scores is None and outputs.alignment is None


@pytest.mark.slow
def test_greedy_search_ends_at_its_limit_or_at_the_end_of_the_cache(model):
    outputs = Greedy(max_length=3)(model, sources(), SearchOptions(cache_length=LIMIT))
    expected = by_greedy(model, sources(), max_length=3, cache_length=LIMIT)
    for ours, theirs in zip(outputs[:2], expected, strict=True):
        np.testing.assert_array_equal(ours[:, 0], theirs)
    whole = Greedy()(model, sources(), SearchOptions(cache_length=LIMIT)).tokens.numpy()
    assert (whole[:, :, 3:] != model.config.tokens.pad_id).any()
    limits = tf.range(1, 1 + len(sources()))  # one for each source, which the cache also limits
    ours = Greedy(limits)(model, sources(), SearchOptions(cache_length=LIMIT)).tokens[:, 0]
    theirs = by_greedy(model, sources(), max_length=limits, cache_length=LIMIT)[0]
    np.testing.assert_array_equal(ours, theirs)
    far = Greedy(max_length=LIMIT + 1)(model, sources(), SearchOptions(cache_length=LIMIT))
    np.testing.assert_array_equal(far.tokens, whole)
    assert Greedy(3).limit(None, 9) == 3 and Greedy().limit(None, 9) == 9


@pytest.mark.parametrize("extra_length, max_length", [slow(3, 7), slow(None, None)])
def test_a_beam_equals_the_function_with_the_limit_of_each_sentence(
    model, lengths, extra_length, max_length
):
    """Returns each sentence's limit: relative and absolute maximum, minimum, cache length."""
    beam = Beam(3, 1.5, min_length=4, extra_length=extra_length, max_length=max_length)
    limits = [
        min(
            LIMIT,
            max(
                4,
                min(
                    math.inf if max_length is None else max_length,
                    math.inf if extra_length is None else length + extra_length,
                ),
            ),
        )
        for length in lengths
    ]
    assert [int(beam.limit(int(length), LIMIT)) for length in lengths] == limits
    outputs = beam(model, sources(), SearchOptions(n_best=2, cache_length=LIMIT))
    limits = tf.constant(limits)
    tokens, scores = by_beam(
        model, sources(), 3, 2, 1.5, min_length=4, max_length=limits, cache_length=LIMIT
    )
    assert outputs.tokens.shape == (5, 2, LIMIT)
    assert_found(outputs, tokens, scores)


@pytest.mark.slow
def test_a_sample_is_seeded_by_the_number_of_its_row(model):
    outputs = Sample(1.5, top_k=9, top_p=0.9, seed=7)(
        model, sources(), SearchOptions(cache_length=LIMIT)
    )
    seeds = tf.constant([(7, row) for row in range(5)])
    tokens, scores = by_sample(model, sources(), 1.5, 9, 0.9, seeds, cache_length=LIMIT)
    assert_found(outputs, tokens[:, None], scores[:, None])


@pytest.mark.parametrize("search", [Sample()], ids=str)
def test_token_scores_and_alignments_have_the_same_axes(model, search):
    outputs = search(
        model, sources(), SearchOptions(cache_length=LIMIT, token_scores=True, alignment=(-1, None))
    )
    assert outputs.token_scores.shape == (5, 1, LIMIT)
    assert outputs.alignment.shape == (5, 1, LIMIT, 13)
    assert np.ptp(outputs.alignment) > 0.1


@pytest.mark.slow
def test_one_graph_serves_all_numbers(model):
    """It returns what the search returns eagerly, also for numbers above 32 bits."""
    beams = [Beam(2, 0.6, extra_length=1), Beam(2, 2, min_length=3), Beam(2, extra_length=10**12)]
    assert len({beam.kind for beam in beams}) == 1 and len(set(beams)) == 3
    assert Beam(2).kind != Beam(3).kind != Beam(3, normalization="none").kind

    def search(source, *values):
        return beams[0].kind.with_values(values)(model, source, SearchOptions(cache_length=LIMIT))[
            :2
        ]

    signature = [tf.TensorSpec([None, None], tf.int32), *beams[0].inputs]
    graph = tf.function(search, input_signature=signature, autograph=False)
    for beam in beams:
        assert_found(
            beam(model, sources(), SearchOptions(cache_length=LIMIT)),
            *graph(sources(), *beam.values(())),
        )
    assert graph.experimental_get_tracing_count() == 1


def test_a_sample_takes_the_numbers_of_its_sentences(model):
    values = Sample(0.5, 3, 0.7, seed=5).values([9, 2])
    assert values[:3] == [0.5, 3, 0.7] and values[3].numpy().tolist() == [[5, 9], [5, 2]]
    assert Sample(0.5, 3, 0.7, seed=5).kind == Sample()
    assert Greedy().kind == Greedy() and Greedy().values([1]) == []


def test_names_are_readable():
    assert [str(search) for search in (Greedy(), Beam(), Beam(5, 1.0), Sample(0.7))] == [
        "greedy",
        "beam 4, gnmt 0.6",
        "beam 5, gnmt 1",
        "sample, temperature 0.7",
    ]
    assert str(Beam(2, normalization="average")) == "beam 2, average"


def test_integers_of_numpy_are_printed_as_plain_ones():
    for search in (Greedy(np.int64(5)), Beam(np.int32(3), max_length=np.int64(5))):
        assert from_dict(json.loads(json.dumps(as_dict(search)))) == search


@pytest.mark.parametrize("value", [0, -1, 2.5, "9"])
def test_greedy_search_checks_its_limit(value):
    with pytest.raises(ValueError, match="`max_length` must be an integer of at least 1, or None"):
        Greedy(max_length=value)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"size": 0}, ValueError, r"^`size` must be at least 1\. Received: size=0\.$"),
        ({"size": 2.5}, TypeError, r"^`size` must be an integer\. Received: size=2\.5\.$"),
        ({"normalization": "x"}, ValueError, r"^`normalization` must be one of gnmt, .*'x'\.$"),
        *(
            (
                {"length_penalty": value},
                ValueError,
                rf"^`length_penalty` must be at least 0 and finite\. Received: .*={value!r}\.$",
            )
            for value in (-1, "a", math.nan, math.inf)
        ),
        (
            {"min_length": 0},
            ValueError,
            r"^`min_length` must be .* of at least 1\. .*=0\.$",
        ),
        ({"min_length": None}, ValueError, r"^`min_length` must be .* at least 1\. .*=None\.$"),
        *(
            (
                {"extra_length": value},
                ValueError,
                rf"^`extra_length` must be an integer of at least 0, or None\. .*={value!r}\.$",
            )
            for value in (-1, "5", 1.5)
        ),
        ({"max_length": 0}, ValueError, r"^`max_length` must be .* at least 1, or None\. .*=0\.$"),
    ],
)
def test_a_beam_checks_its_settings(settings, error, message):
    with pytest.raises(error, match=message):
        Beam(**settings)


@pytest.mark.parametrize("seed", [2**31, -(2**31) - 1, 0.5, None])
def test_a_sample_checks_its_settings(seed):
    with pytest.raises(
        ValueError, match=r"^`seed` must be an integer of 32 bits\. Received: .*\.$"
    ):
        Sample(seed=seed)
    with pytest.raises(
        ValueError, match=r"^`temperature` must be at least 0 and finite\. Received: .*=-1\.$"
    ):
        Sample(temperature=-1)
    with pytest.raises(ValueError, match=r"^`top_p` must be between 0 and 1\. Received: .*=2\.$"):
        Sample(top_p=2)


def test_a_search_that_a_model_does_not_support_is_reported(model):
    for search, n_best, message in [
        (Beam(2), 3, r"`n_best` must be between 1 and `size`\. .*=3, size=2\.$"),
        (Beam(2), 0, r"`n_best` must be between 1 and `size`\. .*=0, size=2\.$"),
        (Beam(20), 1, r"`size` must be at most the vocabulary's .*, 19\. .*size=20\.$"),
        (Beam(min_length=14), 1, r"`min_length` must be between 1 and 13\. .*min_length=14\.$"),
        (Greedy(), 2, r"`n_best` must be 1 .* n_best=2, search=Greedy\(max_length=None, .*\)\.$"),
        (Sample(), 2, r"`n_best` must be 1 .* n_best=2, search=Sample\(.*\)\.$"),
    ]:
        with pytest.raises(ValueError, match=message):
            search(model, sources(), SearchOptions(n_best=n_best, cache_length=LIMIT))


def test_options_that_have_no_effect_or_are_no_options_are_refused(model):
    with pytest.raises(ValueError, match=r"^`sizes` has no effect with `Greedy`\. .*=\[1, 2\]\.$"):
        Greedy()(model, sources(), SearchOptions(sizes=[1, 2]))
    with pytest.raises(TypeError, match=r"^`options` must be `SearchOptions`\. Received: .*=4\.$"):
        Beam(2)(model, sources(), 4)


def test_outputs_end_within_their_limits(model, lengths):
    """So that the tests above can fail: the limits truncate some outputs, but not all."""
    outputs = Beam(3, extra_length=0)(model, sources(), SearchOptions(cache_length=LIMIT))
    counts = np.count_nonzero(outputs.tokens[:, 0], axis=1)
    assert (counts <= lengths).all()
    ended = [EOS in row for row in outputs.tokens[:, 0].numpy()]
    assert any(ended) and not all(ended)
