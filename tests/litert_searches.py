"""Searches converted to LiteRT, compared with TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.tensorflow_converter import convert_functions


def assert_same_in_litert(model, source, search, cache_stages):
    """Checks that a search with stages finds in LiteRT what it finds with a single stage.

    Args:
        model: The model, whose variables the search reads.
        source: Token ids `[B, S]`.
        search: Function of a source with an argument `cache_stages`, which returns token ids.
        cache_stages: See `SearchOptions`.
    """
    pytest.importorskip("ai_edge_litert")
    function = tf.function(
        lambda source: {"tokens": tf.maximum(search(source, cache_stages=cache_stages), 0)},
        autograph=False,
    )
    specification = tf.TensorSpec(source.shape, tf.int32, name="source")
    content = convert_functions(
        model, {"search": function.get_concrete_function(source=specification)}
    )
    run = load_interpreter()(model_content=content).get_signature_runner("search")
    expected = search(tf.constant(source), cache_stages=())
    np.testing.assert_array_equal(run(source=source)["tokens"], expected)
