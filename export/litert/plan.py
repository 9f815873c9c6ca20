"""Assignment of texts to the signatures of a .tflite file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the module itself needs no TensorFlow
    from keras_transformer.export.litert.packed import FixedSignature

# Constant cost of a call, in units of the cost of a row. Measured for greedy search with one and
# two threads, float32 and int8, models of 5 and 60 million parameters: 1 to 4 (7 once), with a beam
# 0.1 to 0.5.
OVERHEAD = 2
# Constant cost of a call that answers in one pass, in units of the cost of a token. Measured with
# one thread and six layers of width 384: 2 in int8 and 13 in float32.
TOKENS = 8


def search_cost(signature: FixedSignature) -> int:
    """Returns the cost of a search, whose time depends on the number of rows most of all."""
    return signature.batch_size + OVERHEAD


def answer_cost(signature: FixedSignature) -> int:
    """Returns the cost of an answer in one pass, whose time depends on the number of tokens."""
    return signature.batch_size * signature.source_length + TOKENS


def plan(
    lengths: Sequence[int],
    signatures: Sequence[FixedSignature],
    cost: Callable[[FixedSignature], int] = search_cost,
) -> list[tuple[FixedSignature, list[int]]]:
    """Assigns sources to signatures so that sources of similar length share a batch.

    The time of a call depends on the shape of its signature, not on how much of it is used. The
    sources are sorted by length and divided into the calls that cost the least together, each with
    the shortest signatures that hold its longest source; of equal plans, the one with the fewest
    tokens is chosen.

    Args:
        lengths: Number of tokens of each source, at most that of the longest signature.
        signatures: List of `FixedSignature`s.
        cost: Function that returns the cost of a call of a signature.

    Returns:
        List of pairs: a `FixedSignature` and the indices of at most `batch_size` sources.
    """
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    # For the sources from each place on: cost and tokens of the best plan, and its first signature.
    best: list[tuple] = [(0, 0, None)] * (len(order) + 1)
    for place in reversed(range(len(order))):
        options = []
        for signature in _shortest(signatures, lengths[order[place]]):
            rest, tokens, _ = best[min(len(order), place + signature.batch_size)]
            tokens += signature.batch_size * signature.source_length
            options.append((cost(signature) + rest, tokens, signature))
        best[place] = min(options, key=lambda option: option[:2])
    calls, place = [], 0
    while place < len(order):
        signature = best[place][2]
        calls.append((signature, order[place : place + signature.batch_size]))
        place += signature.batch_size
    return calls


def _shortest(signatures, length):
    """Returns the signatures of the shortest length that is at least `length`."""
    width = min(s.source_length for s in signatures if s.source_length >= length)
    return [signature for signature in signatures if signature.source_length == width]
