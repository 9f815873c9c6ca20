"""Pipelines of checkpoints of other projects."""

import os
import warnings
from typing import Any

from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import TASKS


def from_pretrained(
    path: str | os.PathLike, max_length: int | None = None, task: str | None = None
) -> Any:
    """Returns the pipeline of a checkpoint of another project, such as a `Translator`.

    Its attribute `model` is the model.

    Args:
        path: A folder in Hugging Face's format, or a `.npz` or `.bin` file of Marian; see
            `read_checkpoint`.
        max_length: See `TextPipeline`.
        task: Name of the task, where the files leave a choice: see `read_checkpoint`.

    Raises:
        ValueError: If there is no checkpoint at `path`, or it is damaged or not supported.

    Example:
        import keras_transformer
        keras_transformer.from_pretrained("opus-mt-en-de")(["A dog runs over the hill."])
    """
    checkpoint = read_checkpoint(path, task=task)
    for note in checkpoint.notes:
        warnings.warn(f"{note}.", stacklevel=2)
    return TASKS[checkpoint.task].pipeline_class().of_checkpoint(checkpoint, max_length)
