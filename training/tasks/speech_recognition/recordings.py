"""`Recordings`, the base class of sources of speech, and its examples as datasets."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.sources.base import Source


class Recordings(Source):
    """Recordings and their transcripts, made or read one at a time.

    A row is (samples `[N]` from -1 to 1, float32, one channel; transcript, a string).

    Args:
        counts: Dictionary from a split to its number of examples.
        description: Content and origin of the data, in one line for users.
        sample_rate: Samples per second.
        read: Function from a split to an iterable of pairs: samples and transcript.
        identities: Dictionary from a split to everything that its examples depend on, plain values.
        texts: Function from a split to an iterable of its transcripts. `None`: they are only known
            together with the samples.
    """

    def __init__(
        self,
        counts: dict[str, int],
        description: str,
        sample_rate: int,
        read: Callable[[str], Iterable[tuple[np.ndarray, str]]],
        identities: dict[str, Any],
        texts: Callable[[str], Iterable[str]] | None = None,
    ):
        self.splits, self.description = tuple(counts), description
        self._counts, self._rate = counts, sample_rate
        self._read, self._identities, self._texts = read, identities, texts

    def metadata(self) -> dict[str, Any]:
        """Returns the sample rate."""
        return {"sample_rate": self._rate}

    def rows(self, split) -> tf.data.Dataset:
        self.check_split(split)
        return ragged_rows(lambda: self._read(split))

    def text_rows(self, split) -> tf.data.Dataset:
        self.check_split(split)
        if (texts := self._texts) is None:
            return self.rows(split)
        none = np.zeros(0, np.float32)
        return ragged_rows(lambda: ((none, text) for text in texts(split)))

    def count(self, split) -> int:
        self.check_split(split)
        return self._counts[split]

    def identity(self, split) -> Any:
        """Returns what the recordings of a split are made of, which is faster than to make them."""
        self.check_split(split)
        return {"sample_rate": self._rate, "recordings": self._identities[split]}


def ragged_rows(make: Callable[[], Iterable[tuple[np.ndarray, str]]]) -> tf.data.Dataset:
    """Returns recordings of any lengths as a dataset whose batches are ragged.

    Args:
        make: Function that returns an iterable of pairs: samples and transcript.
    """

    def pairs():
        for samples, text in make():
            yield np.asarray(samples, np.float32), text

    specs = tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.string)
    with tf.device("CPU:0"):
        return raggedly(tf.data.Dataset.from_generator(pairs, output_signature=specs))


def raggedly(rows: tf.data.Dataset) -> tf.data.Dataset:
    """Returns a dataset whose elements have a type by which they become ragged batches.

    Args:
        rows: A dataset of tuples, such as samples `[N]` and a string.
    """
    return rows.ragged_batch(1).unbatch()
