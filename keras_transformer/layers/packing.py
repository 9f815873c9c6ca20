"""Form in which the layers of a stack pass on the hidden states of a batch."""

from keras import ops

from keras_transformer.tensors import Tensor


class Packing:
    """The default: hidden states `[B, T, D]`, padding included.

    A subclass may pass on another form, such as `[1, N, D]` without padding, through norms and
    dense layers. Attention compares the positions of each text: `split` and `join` convert
    between its heads `[B, H, T, K]` and that form.

    The argument `real` of all methods is the mask `allowed` of the stack: boolean `[B, 1, T]`,
    `True` for tokens that are not padding, or another mask of attention, or `None`.
    """

    def pack(self, x: Tensor, real: Tensor | None) -> Tensor:
        """Returns the hidden states `[B, T, D]` in the form in which the blocks get them."""
        return x

    def unpack(self, x: Tensor, real: Tensor | None) -> Tensor:
        """Returns `[B, T, D]` from the result of `pack`, after the blocks have changed it."""
        return x

    def length(self, x: Tensor, real: Tensor | None) -> int | Tensor:
        """Returns the number of positions T of packed hidden states."""
        return ops.shape(x)[1]

    def split(self, features: Tensor, x: Tensor, count: int, real: Tensor | None) -> Tensor:
        """Returns heads `[B, H, T, K]`.

        Args:
            features: Features of all positions of `x`, `[number of positions, H * K]`.
            x: Packed hidden states.
            count: Number of heads H.
            real: See the class.
        """
        batch, length = ops.shape(x)[:2]
        heads = ops.reshape(features, (batch, length, count, features.shape[-1] // count))
        return ops.transpose(heads, (0, 2, 1, 3))  # [B, H, T, K]

    def join(self, heads: Tensor, real: Tensor | None) -> Tensor:
        """Returns the features `[number of positions, H * K]` of heads `[B, H, T, K]`."""
        width = heads.shape[1] * heads.shape[3]
        return ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (-1, width))

    def restore(self, features: Tensor, heads: Tensor, real: Tensor | None) -> Tensor:
        """Returns features `[number of positions, D]` as packed hidden states.

        Args:
            features: Features of all positions.
            heads: The heads `[B, H, T, K]` that they were computed from.
            real: See the class.
        """
        batch, _, length, _ = ops.shape(heads)
        return ops.reshape(features, (batch, length, features.shape[-1]))


PADDED = Packing()
