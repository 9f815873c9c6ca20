"""`Mixer`, the interface of what reads the other positions in a block."""

from __future__ import annotations

from typing import ClassVar

from keras_transformer.lazy_keras import keras, ops
from keras_transformer.tensors import Tensor
from keras_transformer.variants import Variant


class Mixer(Variant):
    """Base class of mixers, the sublayers of a block that mix positions.

    `SelfAttention` stands for a `MultiHeadSelfAttention`. Any other mixer computes a `Mixing` layer
    whose state does not depend on the query: in a search, each hypothesis has a state of fixed
    size. A subclass needs a `kind`, which is its name in configurations and the name of its
    sublayer in a block. It holds no weights: it adds them to the layer in `build`. With
    `layer.causal`, a position must depend only on itself and earlier ones. For example, a mean of
    all positions so far is

        def call(self, layer, x, real=None):
            x = x if real is None else ops.where(real, x, 0.0)
            return ops.cumsum(x, axis=1) / count_of(x, real)

    Attributes:
        about: What it is, with its source, in a few words: for lists of the kinds.
        attends: Whether it is self-attention, with positions and windows.
        is_causal: Whether a position always depends only on itself and earlier ones, so that an
            encoder cannot have it.
    """

    option = "mixer"
    package = "keras_transformer.mixers"
    default_kind = "self_attention"
    about: ClassVar[str] = ""
    attends = False
    is_causal = False

    @classmethod
    def described_kinds(cls) -> dict[str, str]:
        """Returns what each kind with an `about` of its own is, by name; self-attention first."""
        kinds = {name: vars(kind).get("about") for name, kind in cls.kinds().items()}
        kinds = {name: about for name, about in kinds.items() if about}  # its own, not inherited
        return {cls.default_kind: kinds[cls.default_kind], **kinds}

    def at(self, number: int) -> Mixer:
        """Returns the mixer of one block of a stack; by default the same for all blocks.

        Args:
            number: Index of the block, counted from 0.
        """
        return self

    def output_width(self, width: int) -> int:
        """Returns the number of output features for inputs of `width` features, by default as many.

        In a block they must be equal.
        """
        return width

    def build(self, layer: keras.Layer, width: int) -> None:
        """Adds weights to a `Mixing` layer for inputs of `width` features."""

    def call(self, layer: keras.Layer, x: Tensor, real: Tensor | None = None) -> Tensor:
        """Returns the output `[B, T, D]`.

        Args:
            layer: The `Mixing` layer.
            x: `[B, T, D]`. Padding may be anywhere, and must not change other positions.
            real: Boolean `[B, T, 1]` or `[1, T, 1]`, `False` for padding; `None`: no padding.
        """
        raise NotImplementedError

    def state_shapes(self, width: int) -> tuple[tuple[int, ...], ...]:
        """Returns the shapes of the tensors in the state of a hypothesis; they begin with zeros.

        Args:
            width: Number of input features.
        """
        raise NotImplementedError

    def read(
        self, layer: keras.Layer, x: Tensor, real: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns the output of a causal layer, and the state after the last real position.

        By default this calls `step` for one position after the other.

        Args:
            layer, x: See `call`.
            real: Boolean `[B, T, 1]` or `[1, T, 1]`, `False` for padding after a text; `None`: no
                padding.

        Returns:
            `[B, T, D]`, and the state, tensors `[B, 1, ...]`.
        """
        from keras_transformer.recurrence import last_of, scan

        batch, length = ops.shape(x)[:2]
        state = layer.empty_cache(batch, length)
        reads = ops.ones((1, length, 1), "bool") if real is None else real

        def position(before, here):
            x, index, reads = here
            out, after = self.step(layer, ops.expand_dims(x, 1), before, index)
            kept = tuple(
                ops.where(ops.reshape(reads, (-1, *[1] * (len(new.shape) - 1))), new, old)
                for new, old in zip(after, before, strict=True)
            )
            return kept, (out, *kept)

        places = ops.arange(length, dtype="int32")
        by_position = (ops.swapaxes(x, 0, 1), places, ops.swapaxes(reads, 0, 1))
        outputs, *states = scan(position, state, by_position)  # [T, B, 1, ...] each
        return ops.swapaxes(ops.squeeze(outputs, 2), 0, 1), tuple(map(last_of, states))

    def step(
        self, layer: keras.Layer, x: Tensor, state: tuple[Tensor, ...], index: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns the output for one further position, and the new state.

        Args:
            layer: The `Mixing` layer.
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            state: The state before it, tensors `[B, N, ...]`.
            index: Index of the position, counted from 0: a scalar integer.
        """
        raise NotImplementedError
