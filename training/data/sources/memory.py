"""Examples in memory."""

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.sources.base import SPLITS, Source


class MemoryData(Source):
    """Source whose examples are in memory.

    Args:
        examples: Dictionary from a split to a list of tuples. Their components are strings, numbers
            or lists or arrays of them, which may differ in length.
        description: Content and origin of the data, in one line for users.
    """

    def __init__(self, examples: dict[str, list[tuple]], description: str):
        self.splits = tuple(split for split in SPLITS if examples.get(split))
        self.description = description
        self._examples = examples

    def rows(self, split: str) -> tf.data.Dataset:
        self.check_split(split)
        columns = zip(*self._examples[split], strict=True)
        return tf.data.Dataset.from_tensor_slices(tuple(map(_tensor, columns)))

    def count(self, split: str) -> int:
        self.check_split(split)
        return len(self._examples[split])


def _tensor(column):
    """Returns the values of a column, ragged if they are sequences of several lengths."""
    if isinstance(column[0], list):
        return tf.ragged.constant(column)
    if isinstance(column[0], np.ndarray) and len({len(array) for array in column}) > 1:
        lengths = [len(array) for array in column]
        return tf.RaggedTensor.from_row_lengths(np.concatenate(column), lengths)
    return tf.constant(column)
