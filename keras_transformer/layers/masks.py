"""Masks: boolean tensors in which `True` means "may attend" (section 3.2.3).

Keras's own masks, which it attaches to tensors, are joined with those that are given. The
`Transformer` uses the latter alone.
"""

import contextlib
import threading

import keras
from keras import ops


def padding_mask(tokens, pad_id=0):
    """Returns which keys are real: `tokens != pad_id`.

    Args:
        tokens: Token ids, `[B, S]`, integer.
        pad_id: Id of the padding token.

    Returns:
        Boolean tensor `[B, 1, S]`, the same for every query.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import padding_mask
        >>> padding_mask(np.array([[7, 4, 0, 0]])).numpy().tolist()
        [[[True, True, False, False]]]
    """
    return ops.expand_dims(ops.not_equal(tokens, pad_id), axis=1)  # [B, T=1, S]


def causal_mask(length):
    """Returns which keys come no later than the query: position `i` may attend to `j <= i`.

    Args:
        length: Number of positions T, an integer or a scalar tensor.

    Returns:
        Boolean tensor `[1, T, T]`, the same for every sentence.

    Example:
        >>> from keras_transformer import causal_mask
        >>> causal_mask(3).numpy()[0].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])

    Reference: Vaswani et al. (2017), section 3.2.3, third item.
    """
    positions = ops.arange(length, dtype="int32")  # [T]
    queries, keys = ops.expand_dims(positions, axis=1), ops.expand_dims(positions, axis=0)
    return ops.expand_dims(ops.greater_equal(queries, keys), axis=0)  # [1, T, T]


def window_mask(queries, keys, window):
    """Returns which keys are near the query: by at most `window` positions before or after it.

    Args:
        queries: Positions of the queries, integers `[T]`, or one for all of them: then T is 1.
        keys: Positions of the keys, integers `[S]`.
        window: Largest distance of a key that may be attended to.

    Returns:
        Boolean tensor `[1, T, S]`, the same for every sentence.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.layers.masks import window_mask
        >>> window_mask(np.arange(4), np.arange(4), 1).numpy()[0].astype(int)
        array([[1, 1, 0, 0],
               [1, 1, 1, 0],
               [0, 1, 1, 1],
               [0, 0, 1, 1]])

    Reference: Beltagy et al. (2020), "Longformer: The Long-Document Transformer", section 3.1.
    """
    far = ops.abs(ops.reshape(queries, (-1, 1)) - keys)  # [T, S]
    return ops.expand_dims(ops.less_equal(far, window), axis=0)


def join_masks(*masks):
    """Returns where all masks are true.

    Args:
        *masks: Boolean `[B, S]`, which keys are real, or `[B, T, S]`, which keys a query may attend
            to, or `None`; or `[B]`, which rows are, as `keras.layers.TimeDistributed` has it.

    Returns:
        Boolean tensor `[B, T, S]`, with 1 in place of B or T if all masks have it there; `None` if
        there are no masks.
    """
    joined = None
    for mask in masks:
        if mask is not None:
            if len(mask.shape) == 1:
                mask = ops.expand_dims(mask, axis=1)  # [B, 1]
            if len(mask.shape) == 2:
                mask = ops.expand_dims(mask, axis=1)  # [B, 1, S]
            joined = mask if joined is None else ops.logical_and(joined, mask)
    return joined


# `keras.layers.MultiHeadAttention` takes the mask off the tensors of its caller. One that a layer
# of ours has seen on a tensor, or has put there, has this second name, under which it stays.
_KEPT = "_keras_transformer_mask"


def attached_mask(tensor):
    """Returns the mask that Keras attached to a tensor, boolean `[B, S]`, or `None`."""
    mask = getattr(tensor, "_keras_mask", None)
    if mask is None:
        return getattr(tensor, _KEPT, None)
    with contextlib.suppress(AttributeError):  # arrays of other backends have no attributes
        setattr(tensor, _KEPT, mask)
    return mask


_scope = threading.local()


@contextlib.contextmanager
def fitting_masks():
    """Within it graphs have no checks of a mask's shape: the masks are known to fit."""
    outer, _scope.fits = masks_fit(), True
    try:
        yield
    finally:
        _scope.fits = outer


def masks_fit():
    """Whether this is within `fitting_masks`."""
    return getattr(_scope, "fits", False)


@keras.saving.register_keras_serializable(package="keras_transformer")
class PaddingMask(keras.Layer):
    """`padding_mask` as a layer, so that it has a name in a functional model.

    Args:
        pad_id: Id of the padding token.

    Call arguments:
        tokens: Token ids, `[B, S]`, integer.

    Returns:
        Boolean tensor `[B, 1, S]`.
    """

    def __init__(self, pad_id=0, **kwargs):
        super().__init__(**kwargs)
        self.pad_id = pad_id
        self.built = True

    def call(self, tokens):  # noqa: D102
        return padding_mask(tokens, self.pad_id)

    def compute_output_shape(self, tokens_shape):  # noqa: D102
        batch, length = tokens_shape
        return batch, 1, length

    def compute_output_spec(self, tokens):  # noqa: D102
        return keras.KerasTensor(self.compute_output_shape(tokens.shape), dtype="bool")

    def get_config(self):  # noqa: D102
        return {**super().get_config(), "pad_id": self.pad_id}
