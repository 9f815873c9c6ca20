"""Checkpoints of other projects, opened for use."""

from keras_transformer.pretrained.read import open_checkpoint
from keras_transformer.tasks import TASKS


def from_pretrained(path, max_length=None):
    """Returns what a checkpoint of another project is used by, such as a `Translator`.

    Its attribute `model` is the model.

    Args:
        path: A folder in Hugging Face's format, or a `.npz` or `.bin` file of Marian: see
            `read_checkpoint`.
        max_length: See `TextPipeline`.

    Raises:
        ValueError: If it is something else, damaged, or cannot be expressed.

    Example:
        import keras_transformer
        keras_transformer.from_pretrained("opus-mt-en-de")(["A dog runs over the hill."])
    """
    checkpoint = open_checkpoint(path)
    return TASKS[checkpoint.task].pipeline_class().of_checkpoint(checkpoint, max_length)
