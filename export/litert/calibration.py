"""The ranges of the activations around every product, seen while real sentences are translated.

TensorFlow's own calibrator ends the process at a loop (tensorflow #75140), and the decoder is one.
"""

import functools

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_transformer.export.activations import observe
from keras_transformer.export.errors import ExportError

# What LiteRT's FULLY_CONNECTED applies itself, before its result is rounded to int8.
FUSED = (keras.activations.linear, keras.activations.relu)

# Share of the activations for the sentences of the check that may lie outside of the ranges. Seen,
# for the phrases of the tests: 0.00001 with 200 real sentences, 0.0006 with 5; 0.006 to 0.017 with
# those of another script, one character or one word, of whose tokens 88 to 98 % still agreed.
MAX_OUTSIDE = 0.002


def check_calibration(quantize, sentences):
    """Returns the sentences to calibrate with as a list, or `None` where nothing is calibrated.

    Raises:
        TypeError: If they are not strings.
        ValueError: If all of them are empty, or `quantize` does not go with them.
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
            '`calibration` must hold real sentences with quantize="int8_static", a hundred or '
            "more, other than those of `sentences`. Received: "
            f"{'None' if sentences is None else f'{len(sentences)} sentences'}."
        )
    return list(sentences)


def find_ranges(pipeline, calibration, sentences, what):
    """Calibrates, and checks the ranges with other sentences.

    What lies outside of the ranges is cut. Much can be cut before translations differ in many
    tokens: agreement alone does not find a calibration with the wrong sentences.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        calibration: What `check_calibration` returned.
        sentences: List of real sentences.
        what: Name of what is exported, for the error.

    Returns:
        The ranges, as from `calibrate`, and a dictionary of `calibration`, the metadata of how they
        were found; `None` and an empty dictionary where nothing is calibrated.

    Raises:
        ExportError: If more than `MAX_OUTSIDE` of the activations for `sentences` lie outside.
    """
    if calibration is None:
        return None, {}
    ranges = calibrate(pipeline, calibration)
    outside = share_outside(pipeline, sentences, ranges)
    if not outside <= MAX_OUTSIDE:
        raise ExportError(
            f"{what}: {100 * outside:.2g} % of the activations for `sentences` lie outside of the "
            f"ranges seen in calibration, at most {100 * MAX_OUTSIDE:g} % may. Calibrate with more "
            "sentences, of the kind that is to be translated. The export was not kept."
        )
    metadata = {
        "sentences": len(calibration),
        "ranges": "smallest and largest value around each product, in encoder and decoder step",
        "outside": outside,
    }
    return ranges, {"calibration": metadata}


def calibrate(pipeline, sentences):
    """Translates sentences and returns the ranges of the activations around every product.

    Every product has ranges of its own, so that encoder and decoder share none.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        sentences: List of strings.

    Returns:
        Dictionary from the name of a product, as in `products`, to the smallest and the largest
        value of its input and of its output, `[2, 2]`, float32. 0 is in every range: int8 has to
        represent it exactly.
    """

    def extremes(name, side, x):
        return tf.stack([tf.reduce_min(x), tf.reduce_max(x)])

    lows, highs = np.moveaxis(_observe(pipeline, sentences, extremes), -1, 0)
    ranges = np.stack([lows.min(axis=0, initial=0), highs.max(axis=0, initial=0)], axis=-1)
    return dict(zip(products(pipeline.model), ranges, strict=True))


def share_outside(pipeline, sentences, ranges):
    """Returns which share of the activations for other sentences lies outside of the ranges.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        sentences: List of strings.
        ranges: From `calibrate`.
    """

    def outside(name, side, x):
        low, high = ranges[name][side]
        return tf.reduce_mean(tf.cast((x < low) | (x > high), tf.float32))

    return float(_observe(pipeline, sentences, outside).mean())


class FakeQuantized:
    """A kernel that rounds the input and the output of every product as int8 would.

    Args:
        model: A `Transformer`, of which a copy is given this kernel.
        ranges: From `calibrate`.
    """

    def __init__(self, model, ranges):
        self._ranges = {dense.path: ranges[name] for name, dense in products(model).items()}

    def __call__(self, layer, x):
        """Returns what a `keras.layers.Dense` makes of `x`; one without ranges as it is."""
        if layer.path not in self._ranges:
            return layer(x)
        at_input, at_output = (
            functools.partial(_fake_quantize, *side) for side in self._ranges[layer.path]
        )
        return observed(layer, x, at_input, at_output)


def keep_in_float(weights):
    """Changes no weight of an attention: they are not negative.

    Between two that are rounded, the converter would also compute their product with the values in
    int8, and round them to multiples of 1/256. It does not look through this; see also
    `finish_static_int8`.
    """
    return tf.abs(weights)


def products(model):
    """Returns the layers that multiply by a matrix of weights, by name; all but the output's.

    Logits in 256 steps would be equal where one has to be the largest.
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


def observed(dense, x, at_input, at_output):
    """Returns what a `Dense` layer makes of `x`, with functions before and after its product."""
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
    """Returns the results of `measure` for input and output of all products and all sentences.

    Args:
        pipeline: A `Generator` whose model computes in float32.
        sentences: List of strings.
        measure: Function of the name of a product, 0 for its input or 1 for its output, and the
            tensor.

    Returns:
        Array `[sentences, products, 2, ...]`; empty sentences are left out.
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
