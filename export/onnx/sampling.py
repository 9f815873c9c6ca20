"""Inputs of an .onnx file that draws its outputs: the seed and the settings of each row."""

from collections.abc import Sequence

import numpy as np

from keras_transformer.decoding import Sample
from keras_transformer.lazy_tensorflow import tf


def specs_of(sample: Sample) -> "tuple[tf.TensorSpec, ...]":
    """Returns the `tf.TensorSpec`s of the inputs of a graph that draws its outputs.

    They are the `inputs` of the `Sample`, each with an axis of rows: every row has its own seed
    and its own settings.
    """
    return tuple(
        tf.TensorSpec([None, *spec.shape[1:]], spec.dtype, spec.name) for spec in sample.inputs
    )


def values_of(sample: Sample, numbers: Sequence[int]) -> dict[str, np.ndarray]:
    """Returns the arrays of these inputs by name.

    Args:
        sample: The `Sample`.
        numbers: The number of each row, which together with the seed selects its output.
    """
    specs = specs_of(sample)
    return {
        spec.name: np.array(
            np.broadcast_to(value, [len(numbers), *spec.shape[1:]]), spec.dtype.as_numpy_dtype
        )
        for spec, value in zip(specs, sample.values(numbers), strict=True)
    }
