"""Positions for one of two places, the embeddings or self-attention, and a warning about both."""

import contextlib
import warnings
from typing import Any

from keras_transformer.positions.position import Position
from keras_transformer.tensors import Tensor
from keras_transformer.variants import short


def for_embedding(value: Any) -> Position:
    """Returns the `Position` of an embedding.

    Args:
        value: A `Position`, the name of a kind, or a table; see `Position.make`.

    Raises:
        ValueError: If it acts in self-attention alone.
    """
    position = Position.make(value)
    if position.attends and not position.embeds:
        written = _written(position)
        raise ValueError(
            f"`position` of an embedding must be added to it, but {written} acts in "
            f"self-attention. Give it to the blocks, `position={written}`, and give "
            'the embedding `position="none"`.'
        )
    return position


def for_attention(value: Any, name: str = "position") -> Position:
    """Returns the `Position` of a self-attention.

    Args:
        value: A `Position`, the name of a kind, or a table; see `Position.make`.
        name: Name of the argument.

    Raises:
        ValueError: If it acts on embeddings alone.
    """
    position = Position.make(value, name)
    if position.embeds and not position.attends:
        written = _written(position)
        raise ValueError(
            f"`{name}` of a block or a self-attention must act in self-attention, but {written} is "
            "added to embeddings. Leave it out here, and give it to the embedding: "
            f"`PositionalEmbedding(..., position={written})`."
        )
    return position


def _written(position):
    """Returns a position as it is written as an argument."""
    name = short(position)
    return f'"{name}"' if isinstance(name, str) else repr(position)


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
