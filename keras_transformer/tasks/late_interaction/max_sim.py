"""MaxSim, the similarity of late interaction."""

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor

FORBIDDEN = -1e9  # similarity of a token that is not compared
AT_ONCE = 2**26  # similarities of tokens in memory at a time


def max_sim(queries, passages, query_mask, passage_mask) -> Tensor:
    """MaxSim of queries and passages, Eq. 3 of Khattab and Zaharia (2020), in a graph.

    `sum_i max_j q_i . p_j` over the tokens i of a query and j of a passage.

    Args:
        queries: Vectors `[..., Q, N]`, floating.
        passages: Vectors `[..., S, N]`, of the same leading axes or of axes that broadcast.
        query_mask, passage_mask: Boolean `[..., Q]` and `[..., S]`, `True` for tokens that count.

    Returns:
        float32 `[...]`; 0 if no token of the query, or none of the passage, counts.
    """
    queries, passages = (tf.cast(x, tf.float32) for x in (queries, passages))
    products = tf.matmul(queries, passages, transpose_b=True)  # [..., Q, S]
    products = tf.where(tf.expand_dims(passage_mask, -2), products, FORBIDDEN)
    counts = query_mask & tf.reduce_any(passage_mask, axis=-1, keepdims=True)  # [..., Q]
    return tf.reduce_sum(tf.where(counts, tf.reduce_max(products, axis=-1), 0.0), axis=-1)


def all_similarities(queries, passages, query_mask, passage_mask) -> Tensor:
    """Returns the MaxSim of all A queries with all B passages, float32 `[A, B]`, in a graph.

    Args:
        queries, passages: `[A, Q, N]` and `[B, S, N]`, floating.
        query_mask, passage_mask: `[A, Q]` and `[B, S]`, boolean.
    """
    return max_sim(
        tf.expand_dims(queries, 1),
        tf.expand_dims(passages, 0),
        tf.expand_dims(query_mask, 1),
        tf.expand_dims(passage_mask, 0),
    )


def similarities(queries, passages) -> np.ndarray:
    """Returns the MaxSim of all A queries with all B passages, float32 `[A, B]`.

    Args:
        queries, passages: Lists of arrays `[tokens, N]`, the vectors that count.
    """
    result = np.zeros((len(queries), len(passages)), "float32")
    if not result.size:
        return result
    ours, our_mask = padded_vectors(queries)
    order = np.argsort([len(vectors) for vectors in passages], kind="stable")
    size = max(1, AT_ONCE // (ours.shape[0] * ours.shape[1] * max(map(len, passages), default=1)))
    for begin in range(0, len(order), size):
        chosen = order[begin : begin + size]
        theirs = padded_vectors([passages[number] for number in chosen])
        result[:, chosen] = all_similarities(ours, theirs[0], our_mask, theirs[1]).numpy()
    return result


def padded_vectors(vectors) -> tuple[np.ndarray, np.ndarray]:
    """Returns a list of arrays `[tokens, N]` as one, `[A, S, N]`, and its mask, `[A, S]`."""
    mask = np.arange(max(map(len, vectors))) < np.array([[len(rows)] for rows in vectors])
    result = np.zeros((*mask.shape, vectors[0].shape[1]), "float32")
    for row, values in zip(result, vectors, strict=True):
        row[: len(values)] = values
    return result, mask
