"""Examples to numbers: what of a data set is kept, as the columns of a corpus."""

import typing

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.cutting import cut_texts
from keras_transformer.training.data.stream import unconverted


class Encoded(typing.NamedTuple):
    """Examples as numbers.

    Attributes:
        columns: See `TokenizedCorpus`.
        kept: Which examples of the data set they are, boolean `[examples]`.
        too_long, empty: How many were left out, and why.
        cut: How many of them have a text that was cut.
    """

    columns: tuple
    kept: np.ndarray
    too_long: int
    empty: int
    cut: int


def encode_rows(rows, training, max_length, split, cut_source):
    """Encodes a dataset of examples and leaves out those that are empty or too long.

    Args:
        rows, training, max_length, split, cut_source: See `TokenizedCorpus.from_rows`.

    Returns:
        `Encoded`.

    Raises:
        ValueError: If no example is left, or a column other than text has what cannot be.
    """
    chunks, too_long, empty, cut, every = {}, 0, 0, 0, []
    encoded = rows.batch(1024).map(
        unconverted(lambda *columns: (training.encode(*columns), columns)),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    for batch, strings in encoded.prefetch(1):
        lengths = np.stack([batch[number].row_lengths().numpy() for number in training.texts])
        is_empty = lengths.min(axis=0) < 2
        if cut_source:
            batch = (cut_texts(batch[0], max_length), *batch[1:])
            is_cut, lengths[0] = lengths[0] > max_length, batch[0].row_lengths()
        is_long = ~is_empty & (lengths.max(axis=0) > max_length) & (not training.packed)
        empty, too_long = empty + int(is_empty.sum()), too_long + int(is_long.sum())
        kept = ~(is_empty | is_long)
        cut += int((kept & is_cut).sum()) if cut_source else 0
        _check_numbers(batch, strings, training, split, before=sum(map(len, every)))
        every.append(kept)
        for number, column in enumerate(batch):
            chunks.setdefault(number, []).append(_kept(column, kept, training.texts, number))
    if not sum(kept.sum() for kept in every):
        raise ValueError(
            "The data must hold at least one example with words in each text and at most "
            f"`max_length` tokens. Received: {empty} empty and {too_long} longer examples, "
            f"with max_length={max_length}."
        )
    columns = tuple(
        _ragged(batches) if number in training.texts else tf.constant(np.concatenate(batches))
        for number, batches in sorted(chunks.items())
    )
    return Encoded(columns, np.concatenate(every), too_long, empty, cut)


def _check_numbers(batch, columns, training, split, before):
    """Raises if a column has what cannot be, which is numbered below 0."""
    for number, column in enumerate(batch):
        rows = column
        if isinstance(column, tf.RaggedTensor):
            rows = tf.reduce_min(column, axis=1)
        if (wrong := np.flatnonzero(rows.numpy() < 0)).size:
            value = columns[number].numpy()[wrong[0]].decode("utf-8", "replace")
            raise ValueError(
                f"the {split} split of the data, example {before + wrong[0] + 1}: column "
                f"{number + 1} must be {training.explain(number)}. Received: {value!r}."
            )


def _kept(column, kept, texts, number):
    """What is kept of a column of a batch: values, and of a text the lengths as well."""
    if number not in texts:
        return column.numpy()[kept]
    lengths = column.row_lengths().numpy()
    values = column.flat_values.numpy()[np.repeat(kept, lengths)]
    compact = np.uint16 if texts[number].vocab_size <= 2**16 else np.int32
    return values.astype(compact), lengths[kept]


def _ragged(chunks):
    """Joins (ids, lengths) of many batches into one `tf.RaggedTensor`."""
    values, lengths = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
    with tf.device("CPU:0"):  # a GPU would hold it, and tf.data could not read it there
        return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
