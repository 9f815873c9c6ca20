"""A sublayer with its residual connection and its norm (section 3.1, Fig. 1: "Add & Norm")."""

import typing


class Residual(typing.NamedTuple):
    """`norm(x + dropout(sublayer(x)))`, or with `pre_norm` `x + dropout(sublayer(norm(x)))`.

    It holds layers and is none itself: the block owns them, under names of their own.

    Attributes:
        sublayer: A layer of `x` `[B, T, D]` that returns `[B, T, D]`, or a pair of that and
            something else, such as attention weights.
        norm: The normalisation.
        dropout: The dropout on the output of the sublayer (section 5.4).
        pre_norm: Whether the input of the sublayer is normalised, instead of the sum. Differs from
            the paper: it trains without warm-up.

    Reference: Vaswani et al. (2017), sections 3.1 and 5.4.
    """

    sublayer: typing.Any
    norm: typing.Any
    dropout: typing.Any
    pre_norm: bool

    def __call__(self, x, *arguments, training=None, **options):
        """Returns `[B, T, D]`, and what else the sublayer returned or `None`.

        Args:
            x: `[B, T, D]`.
            *arguments: Further arguments of the sublayer.
            training: Whether dropout is active.
            **options: Further options of the sublayer.
        """
        change = self.sublayer(self._enter(x), *arguments, training=training, **options)
        return self._leave(x, change, training)

    def step(self, x, *arguments, **options):
        """Returns what a call does, by the `step` of the sublayer, without dropout."""
        change = self.sublayer.step(self._enter(x), *arguments, **options)
        return self._leave(x, change, training=False)

    def _enter(self, x):
        return self.norm(x) if self.pre_norm else x

    def _leave(self, x, change, training):
        change, other = change if isinstance(change, tuple) else (change, None)
        x = x + self.dropout(change, training=training)  # [B, T, D]
        return (x if self.pre_norm else self.norm(x)), other
