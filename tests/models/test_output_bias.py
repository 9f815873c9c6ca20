"""A bias of the logits, for every way to tie the output weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from support import S, T, sentences, small_config, to_numpy

from keras_transformer import Transformer

TIES = {"all": {}, "target": {"target_vocab_size": 23}, "none": {"target_vocab_size": 23}}
each_tie = pytest.mark.parametrize(
    "changes", [{"tie": tie, **changes} for tie, changes in TIES.items()], ids=TIES
)


def inputs():
    return {"source": sentences([S, 5]), "target": sentences([T, 7], first=2)}


@pytest.mark.parametrize(
    ("policy", "changes"),
    [
        slow("float32", {"tie": "all"}),
        slow("float32", {"tie": "target", "target_vocab_size": 23}),
        ("mixed_float16", {"tie": "none", "target_vocab_size": 23}),
    ],
    indirect=["policy"],
)
def test_it_is_added_to_the_logits(changes, small_model, policy):
    model, plain = small_model(output_bias=True, **changes), Transformer(small_config(**changes))
    bias = np.random.default_rng(1).normal(size=model.config.output_size)
    model.output_bias.assign(bias)
    plain.set_weights([w for w in model.weights if w is not model.output_bias])
    assert model.count_params() == plain.count_params() + len(bias)
    logits = model(inputs())
    assert logits.dtype == "float32"
    expected = to_numpy(plain(inputs())) + bias
    np.testing.assert_allclose(to_numpy(logits), expected, rtol=0, atol=1e-5)
    hidden = to_numpy(model.hidden_states(inputs(), training=False))
    if policy.compute_dtype == "float32":
        whole = hidden @ to_numpy(model.output_matrix).T + bias
        np.testing.assert_allclose(logits, whole, rtol=0, atol=1e-5)
    assert plain.output_bias is None


@each_tie
def test_it_starts_at_zero_and_is_trained(changes):
    model = Transformer(small_config(output_bias=True, **changes))
    np.testing.assert_array_equal(model.output_bias, np.zeros(model.config.output_size))
    assert model.output_bias.path.endswith("logits/bias")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(inputs()) ** 2)
    assert np.abs(tape.gradient(loss, model.output_bias)).min() > 0


@pytest.mark.parametrize("changes", [{"tie": "none", "target_vocab_size": 23}])
def test_it_is_saved_in_a_file(changes, small_model, tmp_path):
    model = small_model(output_bias=True, **changes)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs()), model(inputs()))
    np.testing.assert_array_equal(loaded.output_bias, model.output_bias)
    assert np.abs(model.output_bias).max() > 0.1
