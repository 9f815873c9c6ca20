"""The copy of the output weights: a search gets the same logits, however they are stored."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import Transformer, TransformerConfig
from keras_transformer.export.parity import copy_model
from keras_transformer.export.saved_model.kernels import output_kernels
from keras_transformer.layers.kernels import DEFAULT


def _transformer(vocab_size=4200, **changes):
    return Transformer(
        TransformerConfig(
            vocab_size=vocab_size, num_layers=1, d_model=8, d_ff=8, num_heads=2, **changes
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "jit", "shapes", "compiled"),
    [
        ((1, 1), False, [(8, 4200)], True),
        ((1, 1), True, [(8, 2112), (8, 2088)], True),
        ((3, 1), False, [(8, 4200)], True),
        ((3, 1), True, [(8, 2112), (8, 2088)], True),
        ((1, 4), False, [(8, 4200)], True),
        ((1, 4), True, [(8, 2112), (8, 2088)], True),
        ((2, 4), False, [(8, 4200)], True),
        ((2, 4), True, [(8, 2112), (8, 2088)], True),
    ],
)
def test_the_logits_are_those_of_the_table(rows, jit, shapes, compiled):
    transformer = _transformer()
    x = np.random.default_rng(0).normal(size=(*rows, 8)).astype("float32")
    expected = x @ transformer.target_embedding.table.numpy().T  # Press and Wolf (2017)
    kernels, added = output_kernels(transformer, jit)
    copy = copy_model(transformer, kernels)
    spec = tf.TensorSpec([None, rows[1], 8], tf.float32)
    project = tf.function(
        copy.target_embedding.project, input_signature=[spec], jit_compile=compiled
    )
    assert [tuple(weight.shape) for weight in added] == shapes
    np.testing.assert_allclose(project(x), expected, rtol=0, atol=1e-6)


def test_a_model_with_its_own_matrix_keeps_it():
    transformer = _transformer(tie="none")
    assert output_kernels(transformer) == (DEFAULT, [])
