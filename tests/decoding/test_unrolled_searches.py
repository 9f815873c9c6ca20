"""A search whose loop is outside of its graphs gives the same results as a search."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from searching import by_beam, by_greedy
from uncertain_models import PAD, sources, talkative, talkative_text, text_prompts

from keras_transformer.decoding import Constraints, Unrolled
from keras_transformer.decoding.unrolled import RUNNING

LIMIT = 13
SEARCHES = {
    "greedy": by_greedy,
    "beam": functools.partial(by_beam, size=3, n_best=3),
}
MODELS = {
    "attention": (talkative, sources),
    "recurrent": (functools.partial(talkative, decoder="ssru"), sources),
    "prompts": (talkative_text, lambda: text_prompts()[:4]),
}


def graphs_of(function, inputs):
    """The two graphs of a search, as a program calls them: traced once, for fixed shapes."""
    unrolled, spec = Unrolled(), tf.TensorSpec(inputs.shape, tf.int32, name="source")
    search = functools.partial(function, unrolled)
    begin = tf.function(lambda source: unrolled.begin(search, source=source), autograph=False)
    begin = begin.get_concrete_function(spec)
    state = {name: tf.TensorSpec(t.shape, t.dtype) for name, t in begin.structured_outputs.items()}
    step = tf.function(lambda s, source: unrolled.step(search, s, source=source), autograph=False)
    return begin, step.get_concrete_function(state, spec)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("attention", "greedy"),
        slow("prompts", "beam"),
        slow("recurrent", "beam"),
        slow("attention", "beam"),
    ],
)
def test_a_program_that_repeats_the_step_gets_the_same_results(model, name):
    make, inputs = MODELS[model]
    model, inputs = make(), tf.constant(inputs())
    options = {"cache_length": LIMIT, "token_scores": True}
    if make is talkative:
        options |= {"constraints": Constraints(no_repeat_ngram=3), "alignment": (1, 0)}

    def search(cache_stages, source):
        return SEARCHES[name](model, source, cache_stages=cache_stages, **options)

    expected = search((), inputs)
    begin, step = graphs_of(search, inputs)
    state, running, steps = begin(inputs), 1, 0
    assert {t.dtype for t in state.values()} <= {tf.float32, tf.int32}
    assert all(t.shape.rank for t in state.values())
    while running:
        outputs = step(state, inputs)
        state |= {key: value for key, value in outputs.items() if key in state}
        running, steps = int(outputs[RUNNING][0]), steps + 1
    length = np.count_nonzero(expected["tokens"] != PAD, axis=-1).max()
    assert length > 2 and steps <= LIMIT
    for key, values in expected.items():
        np.testing.assert_allclose(outputs[key], values, rtol=0, atol=1e-4, err_msg=key)


def test_a_function_without_the_search_is_refused():
    with pytest.raises(ValueError, match="`function` must run one search .* that runs 0"):
        Unrolled().begin(lambda source: {"tokens": source}, source=tf.constant(sources()))
