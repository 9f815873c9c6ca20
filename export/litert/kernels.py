"""A step of the search out of the operations that LiteRT does fastest."""

from keras import ops

from keras_transformer.layers.kernels import Kernels, similarity


def use_fast_step(model):
    """Makes a decoder compute its steps as LiteRT likes it.

    A position is written into the cache by an update of a slice, which is a plain copy, where a
    select reads a condition for every element; TensorFlow itself has no kernel for it on the
    processor. The scores of a single query are a product and a sum, where a matrix product would
    first bring every matrix of keys into another layout for one row.

    Args:
        model: A `Transformer`, which is changed: it cannot decode in TensorFlow any more.
    """
    for block in model.decoder.blocks:
        block.self_attention.kernels = block.cross_attention.kernels = LITERT


def _write(cache, position, index):
    return ops.slice_update(cache, (0, 0, index, 0), position)


def _similarity(query, key):
    if query.shape[2] > 1:
        return similarity(query, key)
    return ops.expand_dims(ops.sum(query * key, axis=-1), axis=2)  # [B, H, T=1, S]


LITERT = Kernels(similarity=_similarity, write=_write)
