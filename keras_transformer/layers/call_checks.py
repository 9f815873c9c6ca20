"""Checks of call arguments: one line that names the argument, the rule and what was received.

Keras would wrap an error that `call` raises into ten lines; these are raised before it.
"""

import keras
import numpy as np

from keras_transformer.layers.masks import masks_fit


def check_ids(value, name, layer):
    """Refuses what are not ids `[B, T]`. Floats may be: Keras's inputs are by default.

    Args:
        value: A tensor or an array; anything else is left to Keras.
        name: Name of the argument.
        layer: The layer.
    """
    dtype, shape = described(value)
    if shape is None:
        return
    received = f"Received by {layer.name!r}: dtype={dtype}, shape={shape}."
    # Not every id above 2,048 is a float16, nor above 256 a bfloat16.
    if not dtype.startswith(("int", "uint", "float32", "float64")):
        raise TypeError(
            f'`{name}` must be integer token ids: `keras.Input((None,), dtype="int32")`. {received}'
        )
    if len(shape) != 2:
        raise ValueError(f"`{name}` must be token ids [batch, positions]. {received}")


def check_positions(value, name, layer, ndim=None):
    """Refuses what is not floating, `[B, T, D]` or `[..., D]`, of the width that a layer has.

    Args:
        value: A tensor or an array; anything else is left to Keras.
        name: Name of the argument.
        layer: The layer; it has the dictionary `widths` once it is built.
        ndim: Number of axes. `None`: any.
    """
    dtype, shape = described(value)
    if shape is None:
        return
    received = f"Received by {layer.name!r}: dtype={dtype}, shape={shape}."
    if not dtype.startswith(("float", "bfloat")):
        raise TypeError(
            f"`{name}` must be embedded, floating [batch, positions, features]; token ids go "
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


def check_same_batch(positions, layer):
    """Refuses tensors, by name, of which the first axes are known and differ."""
    batches = [_shape(value)[0] for value in positions.values() if _shape(value)]
    if None not in batches and len(set(batches)) > 1:
        raise ValueError(
            f"{' and '.join(f'`{name}`' for name in positions)} must have the same batch. "
            f"Received by {layer.name!r}: batches of {' and '.join(map(str, batches))}."
        )


def check_mask(mask, name, queries, keys, layer):
    """Refuses a mask that does not fit; where a graph is built, what is not known then is checked
    when it runs.

    Args:
        mask: Boolean `[B, S]`, true where a key is real, or but for Keras's masks `[B, T, S]`, true
            where a query may attend to a key; with 1 in place of B or T for all of them.
        name: Name of the argument.
        queries: `[B, T, D]`.
        keys: `[B, S, D]`.
        layer: The layer.

    Returns:
        The mask, a tensor or an array.
    """
    mask = np.asarray(mask) if isinstance(mask, list | tuple) else mask
    dtype, shape = described(mask)
    of_keras = name.endswith("mask")
    sizes = [*(_shape(queries) or ())[:2], *(_shape(keys) or ())[1:2]]  # B, T, S
    forms = "[B, S]" if of_keras else "[B, S], [B, 1, S] or [B, T, S]"
    rule = f"`{name}` must be boolean, {forms} (1 in place of B holds for all), with B, T, S = "
    received = f"Received by {layer.name!r}: dtype={dtype}, shape="
    if dtype != "bool":
        raise TypeError(f"{rule}{sizes}. {received}{shape}.")
    axes = [shape[0], 1, shape[1]] if shape and len(shape) == 2 else shape
    if axes is None or len(axes) != 3 or (of_keras and len(shape) == 3):
        raise ValueError(f"{rule}{sizes}. {received}{shape}.")
    fits = [
        (size == 1 and place < 2) or (None if None in (size, wanted) else size == wanted)
        for place, (size, wanted) in enumerate(zip(axes, sizes, strict=True))
    ]
    if False in fits:
        raise ValueError(f"{rule}{sizes}. {received}{shape}.")
    if None in fits and not masks_fit() and _is_tensorflow(mask, queries, keys):
        return _checked_at_run_time(mask, queries, keys, rule, received)
    return mask


def check_mask_of_positions(allowed, layer):
    """Refuses a mask that is not the same for every query, as a layer with a state needs it.

    Args:
        allowed: `[B, T]` or `[B, 1, T]`; `None` or anything without a shape is left to others.
        layer: The layer.
    """
    shape = _shape(np.asarray(allowed) if isinstance(allowed, list | tuple) else allowed)
    if shape is not None and len(shape) == 3 and shape[1] != 1:
        raise ValueError(
            "`allowed` must be [B, T] or [B, 1, T] for an SSRU: its state holds the same positions "
            f"for whoever reads it. Received by {layer.name!r}: shape={shape}."
        )


def _checked_at_run_time(mask, queries, keys, rule, received):
    """The mask, after an assertion. XLA leaves assertions out: there the reshape fails instead."""
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


def described(value):
    """Returns dtype and static shape of a tensor or an array; `None` for what is unknown."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None:  # one of TensorFlow's may not even know its number of axes
        shape = None if getattr(shape, "rank", 0) is None else tuple(shape)
    try:
        return keras.backend.standardize_dtype(dtype), shape
    except ValueError:
        return str(dtype), shape  # of strings


def _shape(value):
    return described(value)[1]
