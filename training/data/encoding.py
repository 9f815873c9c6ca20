"""Examples to numbers: what of a data set is kept, as the columns of a corpus."""

import typing

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.stream import unconverted


class Encoded(typing.NamedTuple):
    """Examples as numbers.

    Attributes:
        columns: Dictionary from the names of a training's fields to their encoded columns: see
            `TokenizedCorpus`.
        kept: Which examples of the data set they are, boolean `[examples]`.
        too_long, empty: How many were left out, and why.
        cut: How many of them have a text that was cut.
    """

    columns: dict
    kept: np.ndarray
    too_long: int
    empty: int
    cut: int


def encode_rows(rows, training, max_length=None, split="train", cut_source=False):
    """Encodes a dataset of examples and leaves out those that are empty or too long.

    Args:
        rows, training, max_length, split, cut_source: See `TokenizedCorpus.from_rows`. Examples
            without a ragged column have no length.

    Returns:
        `Encoded`.

    Raises:
        ValueError: If no example is left, or a value cannot be used.
    """
    fields, chunks, too_long, empty, cut, every = training.fields, {}, 0, 0, 0, []
    ragged = [name for name, field in fields.items() if field.is_ragged]

    def encode(*values):
        columns = dict(zip(training.columns, values, strict=True))
        return training.encode(columns), columns

    encoded = rows.batch(1024).map(unconverted(encode), num_parallel_calls=tf.data.AUTOTUNE)
    for batch, columns in encoded.prefetch(1):
        kept = np.ones(_rows_of(batch), bool)
        if ragged:
            lengths = {name: batch[name].row_lengths().numpy() for name in ragged}
            is_empty = np.any([lengths[name] < fields[name].min_length for name in ragged], axis=0)
            if cut_source:
                first = ragged[0]
                batch = {**batch, first: fields[first].cut(batch[first], max_length)}
                is_cut, lengths[first] = lengths[first] > max_length, batch[first].row_lengths()
            longest = np.max(list(lengths.values()), axis=0)
            is_long = ~is_empty & (longest > max_length) & (not training.packed)
            empty, too_long = empty + int(is_empty.sum()), too_long + int(is_long.sum())
            kept = ~(is_empty | is_long)
            cut += int((kept & is_cut).sum()) if cut_source else 0
        _check_values(batch, columns, fields, split, before=sum(map(len, every)))
        every.append(kept)
        for name, field in fields.items():
            chunks.setdefault(name, []).append(_kept(batch[name], kept, field))
    if not sum(kept.sum() for kept in every):
        raise ValueError(_nothing_left(ragged, empty, too_long, max_length))
    joined = {name: _joined(chunks[name], field) for name, field in fields.items()}
    return Encoded(joined, np.concatenate(every), too_long, empty, cut)


def _nothing_left(ragged, empty, too_long, max_length):
    if not ragged:
        return "The data must hold at least one example. Received: none."
    return (
        "The data must hold at least one example with words in each text and at most "
        f"`max_length` tokens. Received: {empty} empty and {too_long} longer examples, "
        f"with max_length={max_length}."
    )


def _rows_of(batch):
    column = next(iter(batch.values()))
    return int(column.nrows() if isinstance(column, tf.RaggedTensor) else column.shape[0])


def _check_values(batch, columns, fields, split, before):
    """Raises if an encoded column has a value that cannot be used."""
    for name, field in fields.items():
        valid = field.is_valid(batch[name])
        if valid is not None and (wrong := np.flatnonzero(~valid.numpy())).size:
            raise ValueError(
                f"the {split} split of the data, example {before + wrong[0] + 1}: `{name}` must "
                f"be {field.explain()}. Received: {_shown(columns[name][wrong[0]])}."
            )


def _shown(value):
    """A value of the data, as an error shows it."""
    value = value.numpy()
    return repr(value.decode("utf-8", "replace") if isinstance(value, bytes) else value)


def _kept(column, kept, field):
    """What is kept of a column of a batch: items, and the lengths of sequences."""
    if not field.is_ragged:
        return column.numpy().astype(field.dtype, copy=False)[kept]
    lengths = column.row_lengths().numpy()
    values = column.flat_values.numpy()[np.repeat(kept, lengths)]
    return values.astype(field.dtype, copy=False), lengths[kept]


def _joined(chunks, field):
    """Joins many batches of a column into one tensor, which is a `tf.RaggedTensor` if ragged."""
    with tf.device("CPU:0"):  # a GPU would hold it, and tf.data could not read it there
        if not field.is_ragged:
            return tf.constant(np.concatenate(chunks))
        values, lengths = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
        return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
