"""The prediction head of an encoder, which CTranslate2 does not compute: a file beside its model.

The arrays of `head.npz` are named by layer, such as `output_layer/kernel`, and are float32. Kernels
are `[in, out]`. A head without weights, such as the mean of all tokens, has no file.
"""

import zipfile
from typing import Any

import keras
import numpy as np

from keras_transformer.layers.kernels import DEFAULT
from keras_transformer.models.parts import Parts

HEAD = "head.npz"


def write_head(folder, model) -> None:
    """Writes the weights of the head of an `EncoderModel`, if it has any.

    Output weights that are tied to the embedding are written as weights of their own.
    """
    arrays = {name: value.numpy() for name, value in model.parts.weights("head").items()}
    if getattr(model.config.head, "is_tied", False):
        matrix = keras.ops.convert_to_numpy(model.output_matrix)  # [V, D]
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
    head = model_class.make_head(_untied(config), keras.DTypePolicy("float32"), DEFAULT)
    ids = np.full((1, 1), config.eos_id, np.int32)
    head(np.zeros((1, 1, config.encoder.d_model), np.float32), ids, np.ones((1, 1, 1), bool))
    weights = Parts(None, None, None, head).weights("head")
    path = folder / HEAD
    arrays = _read(path) if weights else {}
    shapes = {name: weight.shape for name, weight in weights.items()}
    if {name: array.shape for name, array in arrays.items()} != shapes:
        raise ValueError(
            f"{path} does not belong to this model, whose head has {', '.join(shapes)} of other "
            "names or shapes. Export the model again."
        )
    for name, weight in weights.items():
        weight.assign(arrays[name])
    return head


def _read(path):
    """Returns the arrays of a file by name; nothing is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise ValueError(f"{path} is damaged or missing. Export the model again.") from error


def _untied(config):
    """Returns the configuration with output weights of their own if they are tied."""
    if not getattr(config.head, "is_tied", False):
        return config
    fields = config.to_dict()
    return type(config).from_dict({**fields, "head": {**fields["head"], "tie": "none"}})
