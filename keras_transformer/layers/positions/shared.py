"""Positions that use the weights of another block, as in T5, where a stack shares one table."""

from keras_transformer.layers.positions.position import Position
from keras_transformer.tensors import Tensor


class SharedPosition(Position):
    """Delegates to the position of another block, including its weights.

    Args:
        block: The `Block` whose self-attention holds the weights. It must be built before this
            position is used.
    """

    def __init__(self, block):
        self.block = block

    def bias(self, attention, heads, queries, keys) -> Tensor:  # noqa: D102
        owner = self.block.self_attention
        return owner.position.bias(owner, heads, queries, keys)

    def values(self, attention, queries, keys) -> Tensor | None:  # noqa: D102
        owner = self.block.self_attention
        return owner.position.values(owner, queries, keys)

    def rotate(self, heads, positions) -> Tensor:  # noqa: D102
        return self.block.self_attention.position.rotate(heads, positions)
