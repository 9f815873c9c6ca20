"""Residual connections with normalisation (section 3.1, Fig. 1: "Add & Norm")."""

from typing import Any, NamedTuple

import keras

from keras_transformer.tensors import Tensor


class Residual(NamedTuple):
    """`norm(x + dropout(sublayer(x)))`, or `x + dropout(sublayer(norm(x)))` with `pre_norm`.

    It is not a layer: the block owns the sublayer, the norm and the dropout as attributes.

    Attributes:
        sublayer: A layer that maps `x` `[B, T, D]` to `[B, T, D]`, or to a pair of this and another
            output, such as attention weights.
        norm: The normalisation.
        dropout: The dropout on the output of the sublayer (section 5.4).
        pre_norm: Whether the input of the sublayer is normalised instead of the sum. Differs from
            the paper; training then needs no warm-up.

    Reference: Vaswani et al. (2017), sections 3.1 and 5.4.
    """

    sublayer: Any
    norm: keras.Layer
    dropout: keras.Layer
    pre_norm: bool

    def __call__(
        self, x: Tensor, *arguments: Any, training: bool | None = None, **options: Any
    ) -> tuple[Tensor, Any]:
        """Returns `[B, T, D]`, and the other output of the sublayer or `None`.

        Args:
            x: `[B, T, D]`.
            *arguments: Further arguments of the sublayer.
            training: Whether dropout is active.
            **options: Further keyword arguments of the sublayer.
        """
        change = self.sublayer(self._enter(x), *arguments, training=training, **options)
        return self._leave(x, change, training)

    def step(self, x: Tensor, *arguments: Any, **options: Any) -> tuple[Tensor, Any]:
        """Returns the same as a call, computed by the sublayer's `step` and without dropout."""
        change = self.sublayer.step(self._enter(x), *arguments, **options)
        return self._leave(x, change, training=False)

    def read(self, x: Tensor) -> tuple[Tensor, Any]:
        """Returns the same as a call, computed by the sublayer's `read` and without dropout."""
        return self._leave(x, self.sublayer.read(self._enter(x)), training=False)

    def _enter(self, x):
        return self.norm(x) if self.pre_norm else x

    def _leave(self, x, change, training):
        change, other = change if isinstance(change, tuple) else (change, None)
        x = x + self.dropout(change, training=training)  # [B, T, D]
        return (x if self.pre_norm else self.norm(x)), other
