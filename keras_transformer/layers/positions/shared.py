"""Positions with the weights of another block: in T5 a stack has one table."""

from keras_transformer.layers.positions.position import Position


class SharedPosition(Position):
    """Does what the position of another block does, with the weights that are there.

    Args:
        block: The `Block` that holds the weights, in its self-attention. It must have been built
            before this is used.
    """

    def __init__(self, block):
        self.block = block

    def bias(self, attention, heads, queries, keys):  # noqa: D102
        owner = self.block.self_attention
        return owner.position.bias(owner, heads, queries, keys)

    def values(self, attention, queries, keys):  # noqa: D102
        owner = self.block.self_attention
        return owner.position.values(owner, queries, keys)

    def rotate(self, heads, positions):  # noqa: D102
        return self.block.self_attention.position.rotate(heads, positions)
