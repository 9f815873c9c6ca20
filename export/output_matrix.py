"""The output weights in the layout that a search reads fastest."""

import tensorflow as tf


def store_output_matrix(model, for_one=True):
    """Makes a model with a tied table multiply by a copy of it, `[D, V]`.

    The table is `[V, D]`, for looking up. On a processor a step of a search reads the copy 1.2 to
    2 times as fast. XLA does so for several hypotheses only.

    Args:
        model: A `Transformer`, which is changed.
        for_one: Whether greedy search, with one hypothesis of each sentence, uses the copy, too.

    Returns:
        List of the variables that were added: one, or none if the model has such a matrix anyway.
    """
    embedding = model.target_embedding
    if model.output_layer is not embedding:
        return []
    matrix = tf.Variable(tf.transpose(embedding.table.value), trainable=False, name="output_matrix")
    by_table = embedding.project

    def project(x):
        if x.shape[1] == 1 and not for_one:
            return by_table(x)
        logits = tf.matmul(tf.reshape(x, [-1, matrix.shape[0]]), matrix)  # [B * N, V]
        return tf.reshape(logits, [-1, x.shape[1] or tf.shape(x)[1], matrix.shape[1]])  # [B, N, V]

    embedding.project = project
    return [matrix]
