"""Masks: boolean tensors in which `True` means "may attend" (section 3.2.3).

Layers combine the masks they are given with those that Keras attaches to tensors. The `Transformer`
passes all masks as arguments.
"""

import contextlib
import threading
from collections.abc import Generator
from typing import Any

import keras
from keras import ops

from keras_transformer.positions.position import column, distances
from keras_transformer.tensors import Shape, Tensor


def padding_mask(tokens: Tensor, pad_id: int = 0) -> Tensor:
    """Returns a mask of the tokens that are not padding: `tokens != pad_id`.

    Args:
        tokens: Token ids, `[B, S]`, integer.
        pad_id: Id of the padding token.

    Returns:
        Boolean tensor `[B, 1, S]`, the same for every query.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.layers import padding_mask
        >>> padding_mask(np.array([[7, 4, 0, 0]])).numpy().tolist()
        [[[True, True, False, False]]]
    """
    return ops.expand_dims(ops.not_equal(tokens, pad_id), axis=1)  # [B, T=1, S]


def causal_mask(length: int | Tensor) -> Tensor:
    """Returns a causal mask: position `i` may attend to position `j` if `j <= i`.

    Args:
        length: Number of positions T, an integer or a scalar tensor.

    Returns:
        Boolean tensor `[1, T, T]`, the same for every sentence.

    Example:
        >>> from keras_transformer.layers import causal_mask
        >>> causal_mask(3).numpy()[0].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])

    Reference: Vaswani et al. (2017), section 3.2.3, third item.
    """
    positions = ops.arange(length, dtype="int32")  # [T]
    queries, keys = ops.expand_dims(positions, axis=1), ops.expand_dims(positions, axis=0)
    return ops.expand_dims(ops.greater_equal(queries, keys), axis=0)  # [1, T, T]


def start_mask(queries: Tensor, keys: Tensor) -> Tensor:
    """Returns a mask of the keys after the first position, to which only that position attends.

    Args:
        queries: Positions of the queries, integer `[T]`, or one position shared by all (T = 1). Or
            those of each sentence, `[B, T, 1]`.
        keys: Positions of the keys, integer `[S]`; then `[B, 1, S]`.

    Returns:
        Boolean tensor `[1, T, S]`, the same for every sentence; or `[B, T, S]`.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.layers.masks import start_mask
        >>> start_mask(np.arange(3), np.arange(3)).numpy()[0].astype(int)
        array([[1, 1, 1],
               [0, 1, 1],
               [0, 1, 1]])
    """
    first = ops.equal(column(queries), 0)  # [T, 1] or [B, T, 1]
    return _of_sentences(ops.logical_or(first, ops.greater(keys, 0)))


def window_mask(queries: Tensor, keys: Tensor, window: int) -> Tensor:
    """Returns a mask of keys near the query: at most `window` positions before or after it.

    Args:
        queries, keys: See `start_mask`.
        window: Largest distance of a key that may be attended to.

    Returns:
        See `start_mask`.

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
    far = ops.abs(distances(queries, keys))  # [T, S] or [B, T, S]
    return _of_sentences(ops.less_equal(far, window))


def _of_sentences(mask):
    """Returns a mask `[T, S]` or `[B, T, S]` with an axis of sentences."""
    return ops.expand_dims(mask, axis=0) if len(mask.shape) == 2 else mask


def join_masks(*masks: Tensor | None) -> Tensor | None:
    """Returns the logical and of masks.

    Args:
        *masks: Boolean masks, or `None`: `[B, S]`, `True` for keys that are not padding;
            `[B, T, S]`, `True` where a query may attend to a key; or `[B]`, `True` for rows that
            are not padding, as `keras.layers.TimeDistributed` makes them.

    Returns:
        Boolean tensor `[B, T, S]`, in which B or T is 1 if it is 1 in all masks; `None` if there
        are no masks.
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


# `keras.layers.MultiHeadAttention` removes the masks from its caller's tensors. So every mask that
# a layer of this package reads from a tensor or puts on one is kept under this second name.
_SECOND_NAME = "_keras_transformer_mask"


def attached_mask(tensor: Tensor) -> Tensor | None:
    """Returns the mask that Keras attached to a tensor, boolean `[B, S]`, or `None`.

    The mask is kept on the tensor under a second name, in case another layer removes it.
    """
    mask = getattr(tensor, "_keras_mask", None)
    if mask is None:
        return getattr(tensor, _SECOND_NAME, None)
    with contextlib.suppress(AttributeError):  # arrays of other backends have no attributes
        setattr(tensor, _SECOND_NAME, mask)
    return mask


_scope = threading.local()


@contextlib.contextmanager
def fitting_masks() -> Generator[None]:
    """Context in which masks are known to fit, so graphs get no checks of their shapes."""
    outer, _scope.fits = masks_fit(), True
    try:
        yield
    finally:
        _scope.fits = outer


def masks_fit() -> bool:
    """Returns whether the caller is inside a `fitting_masks` context."""
    return getattr(_scope, "fits", False)


@keras.saving.register_keras_serializable(package="keras_transformer")
class PaddingMask(keras.Layer):
    """`padding_mask` as a layer, so that it appears by name in a functional model.

    Args:
        pad_id: Id of the padding token.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        tokens: Token ids, `[B, S]`, integer.

    Returns:
        Boolean tensor `[B, 1, S]`.
    """

    def __init__(self, pad_id: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.pad_id = pad_id
        self.built = True

    def call(self, tokens: Tensor) -> Tensor:  # noqa: D102
        return padding_mask(tokens, self.pad_id)

    def compute_output_shape(self, tokens_shape: Shape) -> Shape:  # noqa: D102
        batch, length = tokens_shape
        return batch, 1, length

    def compute_output_spec(self, tokens: Tensor) -> Any:  # noqa: D102
        return keras.KerasTensor(self.compute_output_shape(tokens.shape), dtype="bool")

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "pad_id": self.pad_id}


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenMask(keras.Layer):
    """Attaches the mask of the tokens that are not padding to a tensor with a row for each token.

    The tensor itself is unchanged. Keras's losses and metrics leave out the positions that the mask
    hides.

    Args:
        pad_id: Id of the padding token.
        keeps_first: Whether `pad_id` also begins texts, as in models whose outputs begin with that
            token. Then the first position of a row counts, and so does a `pad_id` that other tokens
            follow: it begins a further text of the row.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        inputs: A list of the tensor `[B, T, ...]` and the token ids `[B, T]`, integer.

    Returns:
        The tensor, with a mask, boolean `[B, T]`.
    """

    def __init__(self, pad_id: int = 0, keeps_first: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.pad_id, self.keeps_first = pad_id, keeps_first
        self.supports_masking = self.built = True

    def call(self, inputs: list[Tensor]) -> Tensor:  # noqa: D102
        return inputs[0]

    def compute_mask(self, inputs: list[Tensor], previous_mask: Any = None) -> Tensor:  # noqa: D102
        tokens = inputs[1]
        real = ops.not_equal(tokens, self.pad_id)  # [B, T]
        if not self.keeps_first:
            return real
        first = ops.equal(ops.cumsum(ops.ones_like(tokens), axis=1), 1)  # [B, T]
        counts = ops.cumsum(ops.cast(real, "int32"), axis=1)  # [B, T]
        begins = ops.less(counts, counts[:, -1:])  # [B, T], before the last real token
        return ops.logical_or(ops.logical_or(real, first), begins)

    def compute_output_spec(self, inputs: list[Tensor]) -> Any:  # noqa: D102
        return keras.KerasTensor(inputs[0].shape, dtype=inputs[0].dtype)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        own = {"pad_id": self.pad_id, "keeps_first": self.keeps_first}
        return {**super().get_config(), **own}
