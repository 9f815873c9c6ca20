"""Local self-attention in blocks, so that its cost grows linearly with the number of positions.

`B` batch, `H` query heads, `G` key and value heads, `T` positions, `N` blocks of `W` positions, `C`
neighbouring blocks that a block reads, itself included.
"""

from collections.abc import Callable

from keras import ops

from keras_transformer.tensors import Tensor

SMALLEST_BLOCK = 32  # positions; smaller products cost as much
# Copying keys and values takes the time of the scores with so many further positions; measured on a
# CPU with `python benchmarks/table1.py --mixers self_attention,restricted`.
COPYING = 360


class LocalBlocks:
    """Positions in blocks, each of which attends to itself and to the blocks beside it.

    A block has at least as many positions as the window. The keys near a query are therefore in its
    own block, in the block before it and, unless attention is causal, in the block after it.

    Args:
        window: Largest distance between a query and a key.
        causal: Whether each position may attend only to itself and earlier positions.
    """

    def __init__(self, window: int, causal: bool):
        self.window, self.causal = window, causal
        self.size = max(window, SMALLEST_BLOCK)  # W
        self.after = 0 if causal else 1
        self.parts = 2 + self.after  # C

    def pays(self, length: int | Tensor) -> bool | Tensor:
        """Returns whether blocks cost less than the scores of all positions with each other."""
        return length > self.parts * self.size + COPYING

    def attend(
        self,
        attend: Callable[..., Tensor],
        heads: tuple[Tensor, Tensor, Tensor],
        keys_mask: Tensor | None,
    ) -> Tensor:
        """Returns the attended values of all positions, `[B, H, T, K]`.

        Args:
            attend: Function of query heads `[B * N, H, W, K]`, key heads and value heads
                `[B * N, G, C * W, K]` and a boolean mask `[B * N, W, C * W]` that returns
                `[B * N, H, W, K]`.
            heads: Query heads `[B, H, T, K]`, key and value heads `[B, G, T, K]`.
            keys_mask: Boolean `[B, 1, T]`, `True` for keys that are not padding; B may be 1.
                `None`: no key is padding.
        """
        query, key, value = heads
        batch, length = ops.shape(query)[0], ops.shape(query)[2]
        count = (length + self.size - 1) // self.size  # N
        blocks = self._joined(self._blocks(query, length, count, 0, 0))  # [B * N, H, W, K]
        near = (self._joined(self._neighbours(x, length, count)) for x in (key, value))
        mask = self._mask(keys_mask, batch, length, count)
        attended = attend(blocks, *near, mask)  # [B * N, H, W, K]
        _, count_of_heads, _, size = attended.shape
        shape = (batch, count, count_of_heads, self.size, size)
        attended = ops.transpose(ops.reshape(attended, shape), (0, 2, 1, 3, 4))
        attended = ops.reshape(attended, (batch, count_of_heads, count * self.size, size))
        return attended[:, :, :length]

    def _blocks(self, x, length, count, before, after):
        """Returns `[B, G, T, K]` as `[B, N + before + after, G, W, K]`, with zeros around it."""
        batch, groups, _, size = ops.shape(x)
        missing = count * self.size - length + after * self.size
        zeros = [
            ops.zeros((batch, groups, positions, size), x.dtype)
            for positions in (before * self.size, missing)
        ]
        x = ops.concatenate([zeros[0], x, zeros[1]], axis=2)
        x = ops.reshape(x, (batch, groups, count + before + after, self.size, size))
        return ops.transpose(x, (0, 2, 1, 3, 4))

    def _neighbours(self, x, length, count):
        """Returns the positions near each block of `x` `[B, G, T, K]`: `[B, N, G, C * W, K]`."""
        blocks = self._blocks(x, length, count, 1, self.after)  # [B, N + C - 1, G, W, K]
        parts = [blocks[:, first : first + count] for first in range(self.parts)]
        return ops.concatenate(parts, axis=3)

    @staticmethod
    def _joined(blocks):
        """Returns blocks as further rows of the batch, `[B * N, G, W, K]`."""
        return ops.reshape(blocks, (-1, *ops.shape(blocks)[2:]))

    def _mask(self, keys_mask, batch, length, count):
        """Returns the keys that each query of a block may attend to, `[B * N, W, C * W]`."""
        queries = ops.expand_dims(ops.arange(self.size, dtype="int32"), 1)  # [W, 1]
        keys = (
            ops.arange(self.parts * self.size, dtype="int32") - self.size
        )  # from the block's start
        near = ops.abs(queries - keys) <= self.window  # [W, C * W]
        if self.causal:
            near = near & (keys <= queries)
        first = ops.arange(count, dtype="int32") * self.size  # [N]
        places = ops.expand_dims(first, 1) + keys  # [N, C * W]
        real = ops.expand_dims((places >= 0) & (places < length), 0)  # [1, N, C * W]
        if keys_mask is not None:
            marks = ops.expand_dims(ops.transpose(ops.cast(keys_mask, "int32"), (0, 2, 1)), 1)
            marks = self._neighbours(marks, length, count)  # [B, N, 1, C * W, 1]
            real = real & (ops.squeeze(marks, (2, 4)) > 0)  # [B, N, C * W]
        mask = ops.expand_dims(real, 2) & near  # [B, N, W, C * W]
        shape = (batch, count, self.size, self.parts * self.size)
        return ops.reshape(ops.broadcast_to(mask, shape), (-1, *shape[2:]))


def chosen(condition: bool | Tensor, one: Callable[[], Tensor], other: Callable[[], Tensor]):
    """Returns the result of one of two functions, by a condition that may be a tensor."""
    if isinstance(condition, bool):
        return one() if condition else other()
    return ops.cond(condition, one, other)
