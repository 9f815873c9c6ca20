"""Checks of call arguments. Every error is one line: the argument, the rule, what was received.

They run before `call`, because Keras wraps an error from `call` into ten lines of its own.
"""

import contextlib
import warnings

import keras
import numpy as np

from keras_transformer.layers.masks import masks_fit
from keras_transformer.positions.position import Position
from keras_transformer.tensors import Tensor


def check_ids(value: Tensor, name: str, layer: keras.Layer, size: int) -> None:
    """Requires token ids `[B, T]`. Floating ids are accepted: `keras.Input` is float32 by default.

    Args:
        value: A tensor or an array. Anything else is left to Keras.
        name: Name of the argument.
        layer: The layer that is called.
        size: Size of the vocabulary. Ids are compared with it if their values are known here:
            arrays and eager tensors, but not while a graph is built.
    """
    dtype, shape = described(value)
    if shape is None:
        return
    received = f"Received by {layer.name!r}: dtype={dtype}, shape={shape}."
    # float16 cannot represent every integer above 2,048, nor bfloat16 every integer above 256.
    if not dtype.startswith(("int", "uint", "float32", "float64")):
        raise TypeError(
            f'`{name}` must be integer token ids: `keras.Input((None,), dtype="int32")`. {received}'
        )
    if len(shape) != 2:
        raise ValueError(f"`{name}` must be token ids [batch, positions]. {received}")
    values = _known_values(value)
    if values is not None and values.size and not (values.min() >= 0 and values.max() < size):
        wrong = values[(values < 0) | (values >= size)][0]
        raise ValueError(
            f"`{name}` must be token ids from 0 to {size - 1}: the vocabulary has {size} tokens. "
            f"Received by {layer.name!r}: {wrong}."
        )


def _known_values(value):
    """Returns the values of an array or an eager tensor of TensorFlow, otherwise `None`."""
    if isinstance(value, np.ndarray):
        return value
    if keras.backend.backend() == "tensorflow" and keras.ops.is_tensor(value):
        return value.numpy() if hasattr(value, "numpy") else None
    return None


def check_positions(value: Tensor, name: str, layer: keras.Layer, ndim: int | None = None) -> None:
    """Requires a floating tensor `[..., D]` with the width D that the layer was built for.

    Args:
        value: A tensor or an array. Anything else is left to Keras.
        name: Name of the argument.
        layer: The layer that is called. Once built, its dictionary `widths` has D for each name.
        ndim: Number of axes. `None`: any.
    """
    dtype, shape = described(value)
    if shape is None:
        return
    received = f"Received by {layer.name!r}: dtype={dtype}, shape={shape}."
    if not dtype.startswith(("float", "bfloat")):
        raise TypeError(
            f"`{name}` must be embedded, floating [batch, positions, features]; pass token ids "
            f"through a `PositionalEmbedding` first. {received}"
        )
    if not shape or shape[-1] is None or (ndim is not None and len(shape) != ndim):
        axes = "[batch, positions, features]" if ndim == 3 else "[..., features]"
        raise ValueError(f"`{name}` must be {axes} with a known number of features. {received}")
    width = getattr(layer, "widths", {}).get(name, shape[-1])
    if shape[-1] != width:
        raise ValueError(
            f"`{name}` must have the {width} features that the layer was built for. {received}"
        )


def check_same_batch(positions: dict[str, Tensor], layer: keras.Layer) -> None:
    """Requires the same batch size of all tensors, as far as it is known."""
    batches = [_shape(value)[0] for value in positions.values() if _shape(value)]
    if None not in batches and len(set(batches)) > 1:
        raise ValueError(
            f"{' and '.join(f'`{name}`' for name in positions)} must have the same batch size. "
            f"Received by {layer.name!r}: batch sizes {' and '.join(map(str, batches))}."
        )


def check_mask(
    mask: Tensor,
    name: str,
    padding: str | None,
    queries: Tensor,
    keys: Tensor,
    layer: keras.Layer,
) -> Tensor:
    """Requires a mask that fits the queries and keys.

    In a TensorFlow graph, sizes that are unknown while it is built are checked when it runs.

    Args:
        mask: Boolean, `[B, S]` if `padding` is `None`, otherwise `[B, T, S]`, `True` where a query
            may attend to a key. B and T may be 1.
        name: Name of the argument.
        padding: Name of the argument that takes a mask `[B, S]` of the same keys. `None`: this
            argument itself does.
        queries: `[B, T, D]`.
        keys: `[B, S, D]`.
        layer: The layer that is called.

    Returns:
        The mask, a tensor or an array.
    """
    mask = np.asarray(mask) if isinstance(mask, list | tuple) else mask
    dtype, shape = described(mask)
    sizes = [*(_shape(queries) or ())[:2], *(_shape(keys) or ())[1:2]]  # B, T, S
    # Two axes could be meant as [T, S], as `keras.layers.MultiHeadAttention` understands them.
    forms = f"[B, 1, S] or [B, T, S]; `{padding}` takes padding, [B, S]" if padding else "[B, S]"
    rule = f"`{name}` must be boolean, {forms} (B may be 1), with B, T, S = "
    received = f"Received by {layer.name!r}: dtype={dtype}, shape="
    if dtype != "bool":
        raise TypeError(f"{rule}{sizes}. {received}{shape}.")
    if shape is None or len(shape) != (3 if padding else 2):
        raise ValueError(f"{rule}{sizes}. {received}{shape}.")
    axes = shape if padding else (shape[0], 1, shape[1])
    fits = [
        (size == 1 and place < 2) or (None if None in (size, wanted) else size == wanted)
        for place, (size, wanted) in enumerate(zip(axes, sizes, strict=True))
    ]
    if False in fits:
        raise ValueError(f"{rule}{sizes}. {received}{shape}.")
    if None in fits and not masks_fit() and _is_tensorflow(mask, queries, keys):
        return _checked_at_run_time(mask, queries, keys, rule, received)
    return mask


def check_kept(kept: Tensor | None, tokens: Tensor, layer: keras.Layer) -> None:
    """Requires a boolean for each token: another shape would be broadcast.

    Args:
        kept: Boolean, in the shape of `tokens`. Anything without a shape is not checked.
        tokens: Token ids `[B, T]`.
        layer: The layer that is called.
    """
    dtype, shape = described(kept)
    wanted = _shape(tokens)
    if shape is None or wanted is None:
        return
    known = [(a, b) for a, b in zip(shape, wanted, strict=False) if None not in (a, b)]
    if dtype != "bool" or len(shape) != len(wanted) or any(a != b for a, b in known):
        raise ValueError(
            f"`kept` must be boolean, one for each token: [B, T]. Received by {layer.name!r}: "
            f"dtype={dtype}, shape={shape} for tokens of shape {wanted}."
        )


def check_mask_of_positions(mask: Tensor | None, name: str, layer: keras.Layer) -> None:
    """Requires a mask that is the same for every query.

    Args:
        mask: `[B, T]` or `[B, 1, T]`. A mask of another rank or without a shape is not checked.
        name: Name of the argument.
        layer: The layer that is called.
    """
    shape = _shape(np.asarray(mask) if isinstance(mask, list | tuple) else mask)
    if shape is not None and len(shape) == 3 and shape[1] != 1:
        raise ValueError(
            f"`{name}` must be the same for every query, so its second axis must be 1. Received "
            f"by {layer.name!r}: shape={shape}."
        )


def _checked_at_run_time(mask, queries, keys, rule, received):
    """Returns the mask after an assertion. XLA drops assertions; its reshape fails instead."""
    import tensorflow as tf

    mask = tf.convert_to_tensor(mask)
    shape = tf.shape(mask)  # [B, S] or [B, T, S]
    wanted = tf.stack([*tf.unstack(tf.shape(queries)[:2]), tf.shape(keys)[1]])  # [B, T, S]
    axes = [0, 2] if len(mask.shape) == 2 else [0, 1, 2]
    one_for_all = tf.equal(shape, 1) & tf.constant([axis < 2 for axis in axes])
    fits = tf.equal(shape, tf.gather(wanted, axes)) | one_for_all
    check = tf.debugging.Assert(tf.reduce_all(fits), [rule, wanted, received, shape])
    with tf.control_dependencies([check]):
        return tf.reshape(mask, [*tf.unstack(shape[:-1]), wanted[-1]])


def _is_tensorflow(*tensors):
    symbolic = any(isinstance(tensor, keras.KerasTensor) for tensor in tensors)
    return keras.backend.backend() == "tensorflow" and not symbolic


def described(value: Tensor) -> tuple[str, tuple | None]:
    """Returns the dtype and the static shape of a tensor or an array; `None` if it has no shape."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None:  # in TensorFlow even the number of axes may be unknown
        shape = None if getattr(shape, "rank", 0) is None else tuple(shape)
    try:
        return keras.backend.standardize_dtype(dtype), shape
    except ValueError:
        return str(dtype), shape  # strings


def _shape(value):
    return described(value)[1]


# On the output of an embedding: its `Position`. Another layer in between drops it.
MARK = "_keras_transformer_position"


def mark(embedded: Tensor, position: Position) -> None:
    """Notes on the output of an embedding which position was added to it.

    Args:
        embedded: The output, `[B, T, D]`.
        position: The `Position` of the embedding.
    """
    if position.embeds:
        with contextlib.suppress(AttributeError):  # arrays of other backends have no attributes
            setattr(embedded, MARK, position)


def warn_if_doubled(x: Tensor, position: Position, name: str) -> None:
    """Warns if a block with a position of its own reads embeddings with another one.

    One position may act in both places.

    Args:
        x: The input of the block, `[B, T, D]`.
        position: The `Position` of its self-attention.
        name: Name of the block.
    """
    added = getattr(x, MARK, None)
    if added is not None and position.attends and added != position:
        delattr(x, MARK)  # one warning for a stack and its first block
        warnings.warn(
            f"The self-attention of {name!r} has {type(position).__name__} positions, and its "
            f"input already has {type(added).__name__} positions. Give the embedding "
            '`position="none"`; or, if both are intended, write `attention_position` instead of '
            "`position` for the block.",
            stacklevel=3,
        )
