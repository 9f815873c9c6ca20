"""Source lengths and batch sizes of an export's graphs with fixed shapes."""

import numbers
from typing import Any


def default_lengths(max_length) -> list[Any]:
    """Returns a few source lengths, each at most four times the one before: 16, 64, ..., the limit.

    Padding costs little, because the encoder runs only once and in parallel, whereas the decoder
    runs token by token.
    """
    lengths = [16 * 4**power for power in range(10)]
    return [length for length in lengths if length < max_length] + [max_length]


def check_shapes(lengths, batch_sizes, max_length) -> None:
    """Raises a `ValueError` unless lengths and batch sizes are valid for `export_litert`."""
    if not _are_counts(lengths) or list(lengths) != sorted(set(lengths)):
        raise ValueError(f"`lengths` must be positive and increasing. Received: {lengths}.")
    if lengths[-1] != max_length:
        raise ValueError(
            f"`lengths` must end in the pipeline's `max_length`, {max_length}, which can be chosen "
            f"when the pipeline is created. Received: {lengths}."
        )
    if not _are_counts(batch_sizes) or len(set(batch_sizes)) < len(batch_sizes):
        raise ValueError(
            "`batch_sizes` must be positive and without duplicates. "
            f"Received: batch_sizes={batch_sizes}."
        )


def _are_counts(values):
    return bool(values) and all(isinstance(x, numbers.Integral) and x > 0 for x in values)
