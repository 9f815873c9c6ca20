"""Token scores and alignments equal those of a pass of the model over the whole output."""

import functools

import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow
from searching import by_beam, by_greedy, by_sample
from uncertain_models import BOS, PAD, logits_of, sources, talkative

from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.tensorflow_converter import convert_functions

LIMIT = 9
SCORES = {"rtol": 0, "atol": 1e-4}
SEARCHES = {
    "greedy": by_greedy,
    "beam": functools.partial(by_beam, size=4, n_best=4, normalization="none"),
    "sample": functools.partial(by_sample, temperature=1.5, seed=(3, 4)),
}


def flat(outputs, source):
    """Returns outputs as `[B * M, ...]`, and the source of each."""
    outputs = {name: values.numpy() for name, values in outputs.items()}
    width = 1 if outputs["tokens"].ndim == 2 else outputs["tokens"].shape[1]
    rows = {
        name: values.reshape(-1, *values.shape[1 + (outputs["tokens"].ndim == 3) :])
        for name, values in outputs.items()
    }
    return rows, np.repeat(source, width, axis=0)


def shifted(tokens):
    return np.insert(tokens[:, :-1], 0, BOS, axis=1)


@pytest.mark.parametrize(
    ("norm", "search"), [("pre", "sample"), slow("post", "beam"), slow("post", "sample")]
)
def test_token_scores_are_those_of_the_model_and_add_up_to_the_score(search, norm):
    model, source = talkative(norm), sources()
    outputs = SEARCHES[search](model, source, max_length=LIMIT, token_scores=True)
    assert list(outputs) == ["tokens", "scores", "token_scores"]
    assert outputs["token_scores"].dtype == tf.float32
    assert outputs["token_scores"].shape == outputs["tokens"].shape
    rows, of_row = flat(outputs, source)
    tokens = rows["tokens"]
    both = np.any(tokens[:, -1] == PAD) and np.any(tokens[:, -1] != PAD)
    assert both or norm == "pre", "some end, and some are cut"
    logits = reference.log_probabilities(logits_of(model)(of_row, shifted(tokens)))
    expected = np.take_along_axis(logits, tokens[:, :, None], 2)[:, :, 0]
    expected = np.where(tokens == PAD, 0, expected)
    np.testing.assert_allclose(rows["token_scores"], expected, **SCORES)
    np.testing.assert_allclose(rows["token_scores"].sum(1), rows["scores"], **SCORES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "head", "search"),
    [(0, 2, "sample"), (-1, None, "beam"), (1, -3, "greedy"), (1, -3, "sample")],
)
def test_alignments_are_the_attention_of_the_whole_output(search, layer, head):
    """Hypotheses change their places and end at different steps, over padded sources."""
    model, source = talkative(), sources()
    outputs = SEARCHES[search](model, source, max_length=LIMIT, alignment=(layer, head))
    assert list(outputs) == ["tokens", "scores", "alignment"]
    assert outputs["alignment"].shape == (*outputs["tokens"].shape, source.shape[1])
    rows, of_row = flat(outputs, source)
    inputs = {"source": of_row, "target": shifted(rows["tokens"])}
    weights = model.attention_weights(inputs)[f"decoder/block_{layer % 2}/cross_attention"].numpy()
    expected = weights.mean(1) if head is None else weights[:, head]
    real = rows["tokens"] != PAD
    np.testing.assert_allclose(rows["alignment"][real], expected[real], rtol=0, atol=1e-5)
    assert np.all(rows["alignment"][~real] == 0)
    assert np.all(rows["alignment"][np.repeat((of_row == PAD)[:, None], LIMIT, 1)] == 0)
    assert np.ptp(expected[real][:, 0]) > 0.05, "rows that are alike would show little"


def test_hypotheses_change_their_places_in_the_beam():
    """Otherwise the test above could not distinguish a hypothesis from its place."""
    outputs = SEARCHES["beam"](talkative(), sources(), max_length=LIMIT, alignment=(1, 0))
    weights, tokens = outputs["alignment"].numpy(), outputs["tokens"].numpy()
    differ = np.abs(weights[:, :1] - weights[:, 1:]).max(-1) > 1e-3
    both = (tokens[:, :1] != PAD) & (tokens[:, 1:] != PAD)
    assert np.mean(differ[both]) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
def test_extra_outputs_do_not_change_the_others(search):
    model, source = talkative(), sources()
    tokens, scores = SEARCHES[search](model, source, max_length=LIMIT)
    outputs = SEARCHES[search](
        model, source, max_length=LIMIT, token_scores=True, alignment=(1, None)
    )
    np.testing.assert_array_equal(outputs["tokens"], tokens)
    np.testing.assert_allclose(outputs["scores"], scores, **SCORES)


@pytest.mark.slow
def test_compiled_is_eager(search="sample", jit_compile=True):
    model, source = talkative(), tf.constant(sources())
    options = {"max_length": 5, "token_scores": True, "alignment": (1, 0)}
    expected = SEARCHES[search](model, source, **options)
    function = tf.function(
        lambda source: SEARCHES[search](model, source, **options), jit_compile=jit_compile
    )
    for name, values in function(source).items():
        np.testing.assert_allclose(values, expected[name], **SCORES, err_msg=name)


def variables_and_operations(search, **options):
    """Counts the tensors in the loop's state and the operations inside and outside the loop."""
    model = talkative()
    function = tf.function(
        lambda source: SEARCHES[search](model, source, max_length=LIMIT, **options),
        autograph=False,
    ).get_concrete_function(tf.TensorSpec([None, None], tf.int32))
    (loop,) = (
        operation for operation in function.graph.get_operations() if "While" in operation.type
    )
    count = sum(len(body.node_def) for body in function.graph.as_graph_def().library.function)
    return len(loop.outputs), count


@pytest.mark.slow
def test_outputs_that_are_not_requested_are_not_in_the_graph(search="beam"):
    variables, operations = variables_and_operations(search)
    for options in ({"token_scores": True}, {"alignment": (0, 0)}):
        more = variables_and_operations(search, **options)
        assert more[0] > variables and more[1] > operations


@pytest.mark.slow
def test_litert_needs_builtin_operators_only_and_returns_the_same(search="beam"):
    model, source = talkative(), sources()
    options = {"max_length": LIMIT, "token_scores": True, "alignment": (1, None)}

    def decode(source):
        outputs = SEARCHES[search](model, source, **options)
        return {**outputs, "tokens": tf.maximum(outputs["tokens"], 0)}

    function = tf.function(decode, autograph=False).get_concrete_function(
        tf.TensorSpec(source.shape, tf.int32, name="source")
    )
    content = convert_functions(model, {"search": function})
    run = load_interpreter()(model_content=content).get_signature_runner("search")
    outputs, expected = run(source=source), decode(tf.constant(source))
    for name, values in expected.items():
        np.testing.assert_allclose(outputs[name], values, **SCORES, err_msg=name)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("alignment", [(2, 0), (0, 3), (-3, 0), (0, -4), 1, (None, 0), (0, 1, 2)])
def test_a_layer_or_head_that_does_not_exist_is_an_error(search, alignment):
    message = r"`alignment` must be a pair .* There are 2 layers and 3 heads\. Received: alignment="
    with pytest.raises(ValueError, match=message):
        SEARCHES[search](talkative(), sources(), alignment=alignment)
