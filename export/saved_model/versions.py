"""Versions of SavedModels: the newest in a folder, the pipeline of one, and loading."""

import pathlib
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from keras_transformer.export.place_checks import SAVED_MODEL, versions
from keras_transformer.export.runtime import reason
from keras_transformer.export.saved_model.metadata import PATH, read_task
from keras_transformer.lazy_tensorflow import register_text_operations
from keras_transformer.plugins import REMEDY
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.signatures import DEFAULT


def newest_version(path) -> pathlib.Path:
    """Returns the folder of a SavedModel: the path itself, or the newest version in it.

    Raises:
        ValueError: If there is no SavedModel.
    """
    path = pathlib.Path(path)
    if (path / SAVED_MODEL).exists():
        return path
    known = versions(path)
    if not known:
        raise ValueError(f"{path} is not a SavedModel: it contains no {SAVED_MODEL}.")
    return path / str(known[-1])


def pipeline_class_of(path) -> Any:
    """Returns the class of the pipeline that a SavedModel was exported from.

    Args:
        path: Folder of a version, or of all versions.

    Returns:
        The class; `None` if the SavedModel does not name its task.

    Raises:
        ValueError: If its task is unknown, or the metadata is damaged.
    """
    path = newest_version(path)
    task = read_task(path)
    if task not in (None, *TASKS):
        raise ValueError(f"{path} has the task {task!r}, which is unknown: {REMEDY}.")
    return None if task is None else TASKS[task].pipeline_class()


def _graph_of(path):
    """Returns the graph of a version, or `None` if its file is damaged."""
    try:
        content = (path / SAVED_MODEL).read_bytes()
        message: Any = saved_model_pb2
        return message.SavedModel.FromString(content).meta_graphs[0]
    except (OSError, DecodeError, IndexError):
        return None


def open_version(path, wanted) -> tuple[Any, Any, Any]:
    """Returns a loaded SavedModel, its default signature, and the class of its pipeline.

    Args:
        path: Folder of a version.
        wanted: Base class of the pipeline.

    Raises:
        ValueError: If the SavedModel is damaged, or was exported from another kind of pipeline.
    """
    model, kind = _load(path), pipeline_class_of(path)
    if kind is None:
        raise ValueError(f"{path} has no {PATH}, which names its task. Export the run again.")
    signature = model.signatures.get(DEFAULT)
    inputs = set() if signature is None else set(signature.structured_input_signature[1])
    if inputs != {*kind.request} or kind.output not in signature.structured_outputs:
        takes = " and ".join(f"`{name}`" for name in kind.request)
        raise ValueError(f"{path} has no signature `{DEFAULT}` that takes {takes}.")
    if not issubclass(kind, wanted):
        raise ValueError(f"{path} holds a model for {kind.task}.")
    return model, signature, kind


def _load(path):
    register_text_operations()
    try:
        return tf.saved_model.load(str(path))
    except Exception as error:  # such as an IndexError for a truncated file
        raise ValueError(
            f"{path} cannot be read as a SavedModel: {_damaged_file(path)} is damaged or missing "
            f"({reason(error)}). Copy all of its files again, or export it again."
        ) from error


def _damaged_file(path):
    """Returns the path of the file that keeps a SavedModel from being read."""
    prefix = path / "variables" / "variables"
    shards = sorted(prefix.parent.glob("variables.data-*"))
    if _graph_of(path) is None:
        return path / SAVED_MODEL
    try:
        reader: Any = tf.train.load_checkpoint(str(prefix)) if shards else None
    except Exception:
        return prefix.with_suffix(".index")
    try:
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception:
        return shards[0] if shards else prefix.with_suffix(".data-00000-of-00001")
    return path / SAVED_MODEL
