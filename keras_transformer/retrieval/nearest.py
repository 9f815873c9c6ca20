"""Exact search for the vectors with the largest dot products, a block of rows at a time."""

import numpy as np

from keras_transformer.retrieval.kind import Nearest

BLOCK_VALUES = 2**24  # of a block of rows in float32, 64 MiB


def nearest(vectors, queries, top, block=None) -> Nearest:
    """Returns the rows with the largest dot products.

    Args:
        vectors: Array `[N, D]`, float32 or float16, which may be mapped from a file.
        queries: Array `[Q, D]`, float32.
        top: Largest number of rows K for each query; there are at most N.
        block: Number of rows that are read at a time. `None`: as many as fit into
            64 MiB, with their scores.
    """
    top = min(top, len(vectors))
    width = max(1, vectors.shape[1], len(queries))
    block = block or max(1, BLOCK_VALUES // width)
    found = Nearest(np.zeros((len(queries), 0), np.float32), np.zeros((len(queries), 0), np.int64))
    for first in range(0, len(vectors) if top else 0, block):
        part = np.asarray(vectors[first : first + block], np.float32)  # [R, D]
        own = best(queries @ part.T, np.arange(first, first + len(part))[None], top)
        pairs = zip(found, own, strict=True)
        found = best(*(np.concatenate(pair, axis=1) for pair in pairs), top)
    return found


def best(scores, rows, top) -> Nearest:
    """Returns the `top` largest of scores `[Q, R]` with their rows `[Q, R]`, in falling order.

    Rows that are the same for all queries may be `[1, R]`.
    """
    rows = np.broadcast_to(rows, scores.shape)
    if scores.shape[1] > top:
        kept = np.argpartition(-scores, top - 1, axis=1)[:, :top]
        least = np.take_along_axis(scores, kept, 1).min(axis=1, keepdims=True)  # [Q, 1]
        if (np.count_nonzero(scores >= least, axis=1) == top).all():  # no tie at the end
            scores, rows = np.take_along_axis(scores, kept, 1), np.take_along_axis(rows, kept, 1)
    order = np.lexsort((rows, -scores), axis=1)[:, :top]
    return Nearest(np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1))
