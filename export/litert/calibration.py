"""Ranges of the activations before and after every product, measured on real sentences.

TensorFlow's own calibrator crashes the process if the graph has a loop (tensorflow #75140), and the
decoder is a loop.
"""

import functools
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_transformer.export.activations import observe
from keras_transformer.export.errors import ExportError
from keras_transformer.tensors import Tensor

# Activations that LiteRT's FULLY_CONNECTED applies itself, before it rounds its result to int8.
FUSED = (keras.activations.linear, keras.activations.relu)

# Maximum share of the activations for the sentences of the check that may lie outside the ranges.
# Measured for the phrases of the tests: 0.00001 when calibrated with 200 real sentences, 0.0006
# with 5; 0.006 to 0.017 when calibrated with sentences of another script, of one character or of
# one word, although 88 to 98 % of the tokens still agreed.
MAX_OUTSIDE = 0.002


def check_calibration(quantize, sentences) -> list[str] | None:
    """Returns the sentences to calibrate with as a list, or `None` if there is no calibration.

    Raises:
        TypeError: If `sentences` is not a list of strings.
        ValueError: If all sentences are empty, or if `quantize` needs no calibration.
    """
    if quantize != "int8_static":
        if sentences is not None:
            raise ValueError(f"`calibration` has no effect with quantize={quantize!r}.")
        return None
    if isinstance(sentences, str) or not all(
        isinstance(sentence, str) for sentence in sentences or ()
    ):
        raise TypeError(f"`calibration` must be a list of strings. Received: {sentences!r}.")
    if not any(sentence.strip() for sentence in sentences or ()):
        raise ValueError(
            '`calibration` must contain real sentences with quantize="int8_static", a hundred or '
            "more, different from `samples`. Received: "
            f"{'None' if sentences is None else f'{len(sentences)} sentences'}."
        )
    return list(sentences)


def find_ranges(
    pipeline, calibration, sentences, what
) -> tuple[dict[str, np.ndarray] | None, dict[str, Any]]:
    """Finds the ranges, and checks them with other sentences.

    Activations outside the ranges are clipped. Many can be clipped before the translations differ
    in many tokens, so that agreement alone does not reveal a calibration with unsuitable sentences.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        calibration: Result of `check_calibration`.
        sentences: List of real sentences.
        what: Name of the export, for the error.

    Returns:
        The result of `calibrate`, and a dictionary of `calibration`, the metadata that describes
        the calibration; `None` and an empty dictionary if there is no calibration.

    Raises:
        ExportError: If more than `MAX_OUTSIDE` of the activations for `sentences` lie outside the
            ranges.
    """
    if calibration is None:
        return None, {}
    ranges = calibrate(pipeline, calibration)
    outside = share_outside(pipeline, sentences, ranges)
    if not outside <= MAX_OUTSIDE:
        raise ExportError(
            f"{what}: {100 * outside:.2g} % of the activations for `samples` lie outside the "
            f"ranges found in calibration, but at most {100 * MAX_OUTSIDE:g} % may. Calibrate with "
            "more sentences of the kind that the model will translate. The export was not kept."
        )
    metadata = {
        "sentences": len(calibration),
        "ranges": "smallest and largest value before and after each product, separately for the "
        "encoder and for a step of the decoder",
        "outside": outside,
    }
    return ranges, {"calibration": metadata}


def calibrate(pipeline, sentences) -> dict[str, np.ndarray]:
    """Translates sentences and returns the ranges of the activations of every product.

    Every product has its own ranges; encoder and decoder share none.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        sentences: List of strings.

    Returns:
        Dictionary from the names of the products, see `products`, to arrays `[2, 2]`, float32: the
        smallest and the largest value of the input, and of the output. Every range includes 0,
        which int8 must represent exactly.
    """

    def extremes(name, side, x):
        return tf.stack([tf.reduce_min(x), tf.reduce_max(x)])

    lows, highs = np.moveaxis(_observe(pipeline, sentences, extremes), -1, 0)
    ranges = np.stack([lows.min(axis=0, initial=0), highs.max(axis=0, initial=0)], axis=-1)
    return dict(zip(products(pipeline.model), ranges, strict=True))


def share_outside(pipeline, sentences, ranges) -> float:
    """Returns the share of the activations for other sentences that lie outside the ranges.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        sentences: List of strings.
        ranges: Result of `calibrate`.
    """

    def outside(name, side, x):
        low, high = ranges[name][side]
        return tf.reduce_mean(tf.cast((x < low) | (x > high), tf.float32))

    return float(_observe(pipeline, sentences, outside).mean())


class FakeQuantized:
    """Kernel that rounds the input and the output of every product as int8 does.

    Args:
        model: The `Transformer` whose copy uses the kernel.
        ranges: Result of `calibrate`.
    """

    def __init__(self, model, ranges):
        self._ranges = {dense.path: ranges[name] for name, dense in products(model).items()}

    def __call__(self, layer, x) -> Tensor:
        """Returns the output of a `keras.layers.Dense`, not rounded if it has no ranges."""
        if layer.path not in self._ranges:
            return layer(x)
        at_input, at_output = (
            functools.partial(_fake_quantize, *side) for side in self._ranges[layer.path]
        )
        return observed(layer, x, at_input, at_output)


def keep_in_float(weights) -> Tensor:
    """Returns attention weights unchanged, because they are not negative.

    If the operations around it are rounded, the converter also computes the product of attention
    weights and values in int8, and rounds the weights to multiples of 1/256. It does not do this
    across `tf.abs`. See also `finish_static_int8`.
    """
    return tf.abs(weights)


def products(model) -> dict[str, keras.Layer]:
    """Returns the layers that multiply by a matrix of weights, by name, except the output layer.

    With only 256 values, several logits would be equally large, although one must be the largest.
    """
    layers = {}

    def walk(layer, path):
        for sublayer in getattr(layer, "layers", ()):
            name = f"{path}/{sublayer.name}"
            if isinstance(sublayer, keras.layers.Dense):
                layers[name] = sublayer
            walk(sublayer, name)

    for stack in (model.encoder, model.decoder):
        walk(stack, stack.name)
    return layers


def observed(dense, x, at_input, at_output) -> Tensor:
    """Returns the output of a `Dense` layer with functions applied before and after its product."""
    product = ops.matmul(at_input(x), dense.kernel)
    if dense.use_bias:
        product = ops.add(product, dense.bias)
    if dense.activation in FUSED:
        return at_output(dense.activation(product))
    return dense.activation(at_output(product))


def _fake_quantize(low, high, x):
    high = high if high > low else 1.0  # only zeros
    return tf.quantization.fake_quant_with_min_max_args(x, low, high)


def _observe(pipeline, sentences, measure):
    """Measures the input and the output of every product for every sentence.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        sentences: List of strings.
        measure: Function of the name of a product, of 0 for its input or 1 for its output, and of
            the tensor.

    Returns:
        Array `[sentences, products, 2, ...]` of the results of `measure`. Empty sentences are
        skipped.
    """
    names = {dense.path: name for name, dense in products(pipeline.model).items()}
    seen = {}

    def watch(name, side, x):
        seen[name, side] = measure(name, side, x)
        return x

    def dense(layer, x):
        if layer.path not in names:
            return layer(x)
        sides = (functools.partial(watch, names[layer.path], side) for side in (0, 1))
        return observed(layer, x, *sides)

    def measured(hidden):
        return tf.stack([[seen[name, 0], seen[name, 1]] for name in names.values()])

    return np.stack(observe(pipeline, sentences, dense, measured))
