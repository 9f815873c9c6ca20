"""A step of the search out of the operations that LiteRT does fastest."""

import contextlib

from keras import ops

from keras_transformer.attention import similarity


@contextlib.contextmanager
def fast_step(model):
    """Makes a decoder compute its steps as LiteRT likes it, while functions are traced.

    A position is written into the cache by an update of a slice, which is a plain copy, where a
    select reads a condition for every element; TensorFlow itself has no kernel for it on the
    processor. The scores of a single query are a product and a sum, where a matrix product would
    first bring every matrix of keys into another layout for one row.

    Args:
        model: A `Transformer`.
    """
    changed = {}
    for block in model.decoder.blocks:
        changed[block.self_attention] = {"write": _write, "similarity": _similarity}
        changed[block.cross_attention] = {"similarity": _similarity}
    for layer, functions in changed.items():
        for name, function in functions.items():
            setattr(layer, name, function)
    try:
        yield
    finally:
        for layer, functions in changed.items():
            for name in functions:
                delattr(layer, name)


def _write(cache, position, index):
    return ops.slice_update(cache, (0, 0, index, 0), position)


def _similarity(query, key):
    if query.shape[2] > 1:
        return similarity(query, key)
    return ops.expand_dims(ops.sum(query * key, axis=-1), axis=2)  # [B, H, T=1, S]
