"""A warning about positions that are added to embeddings and also act in self-attention."""

import contextlib
import warnings

from keras_transformer.positions.position import Position
from keras_transformer.tensors import Tensor

# On the output of an embedding: its `Position`. Another layer in between drops it.
MARK = "_keras_transformer_position"


def mark(embedded: Tensor, position: Position) -> None:
    """Notes on the output of an embedding which position was added to it.

    Args:
        embedded: The output, `[B, T, D]`.
        position: The `Position` of the embedding.
    """
    if position.embeds:
        with contextlib.suppress(AttributeError):  # arrays of other backends have no attributes
            setattr(embedded, MARK, position)


def warn_if_doubled(x: Tensor, position: Position, name: str) -> None:
    """Warns if a block with a position of its own reads embeddings with another one.

    One position may act in both places.

    Args:
        x: The input of the block, `[B, T, D]`.
        position: The `Position` of its self-attention.
        name: Name of the block.
    """
    added = getattr(x, MARK, None)
    if added is not None and position.attends and added != position:
        delattr(x, MARK)  # one warning for a stack and its first block
        warnings.warn(
            f"The self-attention of {name!r} has {type(position).__name__} positions, and its "
            f"input already has {type(added).__name__} positions. Give the embedding "
            '`position="none"`; or, if both are intended, write `attention_position` instead of '
            "`position` for the block.",
            stacklevel=3,
        )
