"""Keys and values with room for more positions: the same outputs as without, for all positions."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines import SIZES, with_larger_weights

from keras_transformer.models import LanguageModel, LanguageModelConfig

TOKENS = np.array([[2, 7, 9, 4, 11, 8, 5, 10, 6, 12, 13]], "int32")
READ, ROOM = 6, 9  # positions that have been read, and those of the arrays
POSITIONS = {
    "sinusoidal": {"position": "sinusoidal"},
    "learned": {"position": "learned"},
    "rotary": {"attention_position": "rotary"},
    "alibi": {"attention_position": "alibi"},
    "t5": {"attention_position": "t5"},
    "relative": {"attention_position": "relative"},
    "window": {"attention_position": "rotary", "mixer": {"kind": "self_attention", "window": 3}},
    "hidden start": {"position": "none", "attention_position": "alibi", "attends_to_start": False},
    "shared heads": {"num_heads": 4, "mixer": {"kind": "self_attention", "num_key_value_heads": 2}},
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_after_those_that_were_read_are_ignored(name):
    options = {**SIZES, "vocab_size": 20, "max_length": 16, **POSITIONS[name]}
    model = with_larger_weights(LanguageModel(LanguageModelConfig.preset("tiny", **options)))
    nothing = model.decoder.empty_cache(1, 0)
    whole, heads = model.read_more(tf.constant(TOKENS), nothing)
    _, past = model.read_more(tf.constant(TOKENS[:, :READ]), nothing)
    garbage = ((0, 0), (0, 0), (0, ROOM - READ), (0, 0))
    roomy = tf.nest.map_structure(
        lambda part: tf.constant(np.pad(part, garbage, constant_values=50.0)), past
    )
    x, found = model.read_more(tf.constant(TOKENS[:, READ:]), roomy, tf.constant(READ))
    np.testing.assert_allclose(x, whole[:, READ:], atol=1e-5)
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(heads), strict=True):
        np.testing.assert_allclose(one[:, :, ROOM:], other[:, :, READ:], atol=1e-5)
    changed, _ = model.read_more(tf.constant(TOKENS[:, READ:]), roomy)  # the check sees the rest
    assert np.abs(changed - whole[:, READ:]).max() > 0.1
