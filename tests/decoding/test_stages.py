"""A cache that grows in stages gives the same results as a cache of full length."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from litert_searches import assert_same_in_litert
from marks import slow
from searching import by_beam, by_greedy, by_sample
from uncertain_models import EOS, PAD, sources, talkative, talkative_text, text_prompts

from keras_transformer.decoding import Constraints, EncoderDecoder, Ensemble, loop
from keras_transformer.decoding.loop import EACH
from keras_transformer.decoding.model_predictor import predictor_of

LIMIT = 13  # with the stages below: 2, 6, 13
SEARCHES = {
    "greedy": by_greedy,
    "beam": functools.partial(by_beam, size=3, n_best=3, compact=False),  # see test_compact_caches
    "sample": functools.partial(by_sample, temperature=0.2, seed=(1, 2)),
}


@pytest.mark.parametrize(
    "length, ends",
    [(5, [5]), (16, [16]), (21, [21]), (22, [16, 22]), (64, [16, 64]), (255, [16, 64, 128, 255]),
     (256, [16, 64, 128, 192, 256])],
)  # fmt: skip
def test_the_last_stage_holds_the_longest_output_and_each_is_a_third_longer(length, ends):
    assert loop.stages(length, (16, 64, 128, 192, 384)) == ends
    assert loop.stages(length, ()) == [length]
    assert loop.stages(length, (16, 64), grows=False) == [length]


def test_the_states_of_a_recurrent_decoder_need_no_stages():
    recurrent, attending = talkative(decoder="ssru"), talkative()
    assert not EncoderDecoder(recurrent).grows and EncoderDecoder(attending).grows
    assert not Ensemble([recurrent]).grows and Ensemble([recurrent, attending]).grows


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "search",
    [name if name == "beam" else pytest.param(name, marks=pytest.mark.slow) for name in SEARCHES],
)
def test_all_results_are_the_same(search, jit_compile):
    model, source = talkative(), tf.constant(sources())
    outputs, expected = (
        tf.function(
            lambda source, cache_stages=cache_stages: SEARCHES[search](
                model,
                source,
                max_length=LIMIT,
                constraints=Constraints(no_repeat_ngram=3),
                token_scores=True,
                alignment=(1, 0),
                cache_stages=cache_stages,
            ),
            jit_compile=jit_compile,
        )(source)
        for cache_stages in ((2, 6, 20), ())
    )
    lengths = np.count_nonzero(expected["tokens"] != PAD, axis=-1)
    assert lengths.min() < 6 < lengths.max(), "some end in the second stage, some in the third"
    np.testing.assert_array_equal(outputs["tokens"], expected["tokens"])
    for name, values in expected.items():
        np.testing.assert_allclose(outputs[name], values, rtol=0, atol=1e-4, err_msg=name)


@pytest.mark.slow
def test_a_finished_search_takes_no_step_of_a_later_stage(monkeypatch):
    """A step sees only the positions of its stage."""
    seen = []

    class Watching(EncoderDecoder):
        def step(self, tokens, state, index):
            # The keys of the first block, in one or two parts.
            seen.append((int(index), sum(key.shape[2] for key in state.cache[0][::2])))
            return super().step(tokens, state, index)

    model, source = Watching(talkative()), sources()[:1]
    tokens, _ = by_greedy(model, source, LIMIT, cache_stages=(2, 6))
    steps = np.count_nonzero(tokens != PAD)
    assert 2 < steps < LIMIT
    assert seen == [(index, 2 if index < 2 else 6 if index < 6 else 13) for index in range(steps)]
    seen.clear()
    monkeypatch.setattr(loop, "FIRST", 2)
    monkeypatch.setattr(loop, "GROWTH", 3)
    by_greedy(model, source, LIMIT, cache_stages=None)
    sizes = [2, 2, 5, 5, 5, 8, 8, 8, 11, 11, 11, 14, 14][:steps]
    assert seen == [*enumerate(sizes)]


SOURCES = {
    "sources": (talkative, sources),
    "prompts": (talkative_text, lambda: text_prompts()[:4]),
    "empty prompt": (talkative_text, lambda: np.array([[EOS, PAD, PAD], [7, 8, EOS]], "int32")),
}


@pytest.mark.parametrize(
    ("in_graph", "name", "kind", "grows"),
    [
        (True, "beam", "empty prompt", None),
        (True, "beam", "prompts", EACH),
        (True, "greedy", "empty prompt", EACH),
        slow(True, "sample", "empty prompt", None),
        slow(True, "greedy", "sources", EACH),
        slow(False, "beam", "sources", EACH),
        slow(True, "beam", "empty prompt", EACH),
    ],
)
def test_a_cache_that_grows_while_it_is_needed_gives_the_same(
    name, kind, in_graph, grows, monkeypatch
):
    monkeypatch.setattr(loop, "FIRST", 3)
    monkeypatch.setattr(loop, "GROWTH", 4)
    make, inputs = SOURCES[kind]
    model, inputs = make(), inputs()
    options = {"cache_length": LIMIT, "token_scores": True}

    def decode(source):
        return SEARCHES[name](model, source, cache_stages=grows, **options)

    if in_graph:
        decode = tf.function(decode, [tf.TensorSpec([None, None], tf.int32)], autograph=False)
    found, expected = decode(inputs), SEARCHES[name](model, inputs, cache_stages=(), **options)
    assert np.count_nonzero(expected["tokens"] != PAD, axis=-1).max() > 5
    np.testing.assert_array_equal(found["tokens"], expected["tokens"])
    for key in ("scores", "token_scores"):
        np.testing.assert_allclose(found[key], expected[key], rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", ["prompts", slow("empty prompt")])
def test_the_graph_of_a_growing_cache_holds_few_steps_however_long_outputs_may_be(kind):
    """With fixed stages there are up to six, and the last one allocates the whole cache."""
    make, inputs = SOURCES[kind]
    model, traced = make(), []

    class Counting(type(predictor_of(model))):
        def step(self, tokens, state, index):
            traced.append(index)
            return super().step(tokens, state, index)

    predictor = Counting(model)
    predictor.max_length = 500
    search = tf.function(
        lambda source: by_greedy(predictor, source, cache_stages=None),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )
    search.get_concrete_function()
    assert len(traced) == (2 if kind == "sources" else 1)


def test_an_unknown_way_to_grow_is_an_error():
    with pytest.raises(ValueError, match="must be sizes, None or \"each\". Received.*'every'"):
        by_greedy(talkative(), sources(), LIMIT, cache_stages="every")


@pytest.mark.parametrize("wrong", [(0, 4), (4, 4), (8, 4)])
def test_stages_that_do_not_increase_are_an_error(wrong):
    with pytest.raises(ValueError, match="`cache_stages` must be positive and increasing"):
        by_greedy(talkative(), sources(), LIMIT, cache_stages=wrong)


@pytest.mark.slow
def test_litert_finds_the_same_in_three_stages():
    """LiteRT's converter failed at other ways to attend to a cache in two parts."""

    def search(source, **options):
        return SEARCHES["beam"](talkative(), source, max_length=LIMIT, **options)[0]

    assert_same_in_litert(talkative(), sources(), search, (2, 6))
