"""The prediction head of an encoder, which CTranslate2 does not compute: a file beside its model.

The arrays of `head.npz` are named by layer, such as `output_layer/kernel`, and are float32. Kernels
are `[in, out]`. A head without weights, such as the mean of all tokens, has no file.
"""

import concurrent.futures
import math
import zipfile
import zlib
from typing import Any

import numpy as np

from keras_transformer.layers.kernels import DEFAULT
from keras_transformer.lazy_keras import keras
from keras_transformer.models.parts import Parts

HEAD = "head.npz"
# Errors of a file that is damaged or encrypted, or has arrays of another kind.
DAMAGES = (
    *(OSError, EOFError, KeyError, ValueError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)


def write_head(folder, model) -> None:
    """Writes the weights of the head of an `EncoderModel`, if it has any.

    Output weights that are tied to the embedding are written as weights of their own.
    """
    arrays = {name: value.numpy() for name, value in model.parts.weights("head").items()}
    if getattr(model.config.head, "is_tied", False):
        matrix = keras.ops.convert_to_tensor(model.output_matrix).numpy()  # [V, D]
        arrays["output_layer/kernel"] = np.ascontiguousarray(matrix.T)
    if arrays:
        np.savez(folder / HEAD, **arrays)


def read_head(folder, model_class, config) -> Any:
    """Returns the `Head` of an `EncoderModel` with the weights of a folder.

    Args:
        folder: Path of the folder.
        model_class: Class of the model.
        config: The configuration of the model.

    Raises:
        ValueError: If the file is damaged, or is missing although the head has weights.
    """
    config = _untied(config)
    shapes = _shapes(model_class, config)
    arrays = _read(folder / HEAD, shapes) if shapes else {}
    head = _built(model_class, config)
    for name, weight in _weights(head).items():
        weight.assign(arrays[name])
    return head


def _shapes(model_class, config):
    """Returns the shapes of the weights of a head by name, without memory for their values.

    It runs in a thread of its own: Keras would initialise variables without values later, when the
    thread that made them uses another `StatelessScope`.
    """

    def shapes():
        with keras.StatelessScope(initialize_variables=False):
            weights = _weights(_built(model_class, config))
        return {name: tuple(weight.shape) for name, weight in weights.items()}

    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        return executor.submit(shapes).result()


def _built(model_class, config):
    """Returns the `Head` that a configuration describes, with variables."""
    head = model_class.make_head(config, keras.DTypePolicy("float32"), DEFAULT)
    hidden = keras.KerasTensor((1, 1, config.encoder.d_model), "float32")
    head(hidden, keras.KerasTensor((1, 1), "int32"), keras.KerasTensor((1, 1, 1), "bool"))
    return head


def _weights(head):
    """Returns the variables of a `Head` by name."""
    return Parts(None, None, None, head).weights("head")


def _read(path, shapes):
    """Returns the arrays of a file by name; nothing is unpickled.

    The shapes are checked before memory is allocated.

    Args:
        path: Path of the file.
        shapes: Dictionary from the names of the arrays to their shapes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            stored = {name.removesuffix(".npy") for name in archive.namelist()}
            size = 4 * sum(map(math.prod, shapes.values()))
            fits = stored == {*shapes} and size <= path.stat().st_size
            names = shapes if fits else ()
            arrays = {name: _array(archive, name, shapes[name]) for name in names}
    except DAMAGES as error:
        raise ValueError(f"{path} is damaged or missing. Export the model again.") from error
    if not arrays or any(array is None for array in arrays.values()):
        raise ValueError(
            f"{path} does not belong to this model, whose head has {', '.join(shapes)} of other "
            "names or shapes. Export the model again."
        )
    return arrays


def _array(archive, name, shape):
    """Returns an array of a file in float32, or `None` if it has another shape."""
    with archive.open(f"{name}.npy") as file:
        np.lib.format.read_magic(file)
        found, is_transposed, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype != np.float32:
            raise ValueError(f"{name} is not float32")
        if found != shape:
            return None
        values = np.frombuffer(file.read(4 * math.prod(shape)), dtype)
    return values.reshape(shape, order="F" if is_transposed else "C")


def _untied(config):
    """Returns the configuration with output weights of their own if they are tied."""
    if not getattr(config.head, "is_tied", False):
        return config
    fields = config.to_dict()
    return type(config).from_dict({**fields, "head": {**fields["head"], "tie": "none"}})
