"""Positions for one place: the embeddings, or self-attention."""

from typing import Any

from keras_transformer.positions.position import Position
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
