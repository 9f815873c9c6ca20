"""Position encodings (section 3.5; Table 3, row E).

To add a position encoding, write a class in a file of its own, and add its name to `KINDS` here and
to the choices of `StackConfig.position`, which must not import this module because it imports
Keras. Positions of users are objects, or the names of classes that are registered with Keras.
"""

from typing import Any

from keras_transformer import variants
from keras_transformer.layers.positions.alibi import Alibi
from keras_transformer.layers.positions.binary import Binary
from keras_transformer.layers.positions.disentangled import Disentangled
from keras_transformer.layers.positions.position import Position, distances
from keras_transformer.layers.positions.relative import Relative
from keras_transformer.layers.positions.rotary import Rotary
from keras_transformer.layers.positions.t5 import T5Bias
from keras_transformer.layers.positions.tables import (
    FixedPosition,
    Learned,
    Sinusoidal,
    sinusoids,
)

__all__ = [
    "KINDS",
    "Alibi",
    "Binary",
    "Disentangled",
    "FixedPosition",
    "Learned",
    "Position",
    "Relative",
    "Rotary",
    "Sinusoidal",
    "T5Bias",
    "distances",
    "checked_for_attention",
    "for_attention",
    "for_embedding",
    "get",
    "of_attention",
    "of_embedding",
    "serialize",
    "sinusoids",
]

KINDS = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "binary": Binary,
    "rotary": Rotary,
    "relative": Relative,
    "alibi": Alibi,
    "t5": T5Bias,
    "disentangled": Disentangled,
    "none": Position,
}


def get(identifier, **options) -> Position:
    """Returns a `Position`.

    Args:
        identifier: A `Position`, a name in `KINDS`, the name of a registered class, or the result
            of `serialize`.
        **options: Arguments of the constructor, if `identifier` is a name.

    Raises:
        ValueError: If the name is unknown.
    """
    position = variants.restored("position", identifier)
    if isinstance(position, Position):
        return position
    return _class(position)(**options)


def for_embedding(identifier) -> Position:
    """Returns the `Position` of an embedding: see `get`.

    Raises:
        ValueError: If it acts in self-attention alone.
    """
    position = get(identifier)
    if position.attends and not position.embeds:
        raise ValueError(
            f"`position` of an embedding must be added to it, but {_written(identifier)} acts in "
            f"self-attention. Give it to the blocks, `position={_written(identifier)}`, and give "
            'the embedding `position="none"`.'
        )
    return position


def for_attention(identifier) -> Position:
    """Returns the `Position` of a self-attention: see `get`.

    Raises:
        ValueError: If it acts on embeddings alone.
    """
    return get(checked_for_attention(identifier, "position"))


def checked_for_attention(identifier, name) -> Any:
    """Returns the identifier of a `Position` in the attention of a layer, or raises `ValueError`.

    Args:
        identifier: See `get`.
        name: Name of the argument.

    Raises:
        ValueError: If the position acts on embeddings alone, or its name is unknown.
    """
    position = variants.restored("position", identifier)
    kind = type(position) if isinstance(position, Position) else _class(position, name)
    if kind.embeds and not kind.attends:
        written = _written(position)
        raise ValueError(
            f"`{name}` of a block or a self-attention must act in self-attention, but {written} is "
            "added to embeddings. Leave it out here, and give it to the embedding: "
            f"`PositionalEmbedding(..., position={written})`."
        )
    return position


def of_embedding(config) -> Position:
    """Returns the `Position` of the embedding before the stack that a `StackConfig` describes."""
    if isinstance(config.position, Position):
        return config.position if config.position.embeds else Position()
    kind = _class(config.position)
    return kind.of_embedding(config) if kind.embeds else Position()


def of_attention(config) -> Position:
    """Returns the `Position` of the self-attention that a `StackConfig` describes."""
    position = config.position_in_attention
    if isinstance(position, Position):
        return position if position.attends else Position()
    kind = _class(position)
    return kind.of_attention(config) if kind.attends else Position()


def serialize(position) -> dict[str, Any]:
    """Returns a `Position` as a dictionary of plain values."""
    return variants.plain(position)


def _class(name, argument="position"):
    """Returns the class with a name, built in or registered."""
    variants.check_variant("position", KINDS, argument, name)
    return KINDS.get(name) or variants.own_class("position", name)


def _written(identifier):
    """Returns a position as it is written as an argument."""
    return f'"{identifier}"' if isinstance(identifier, str) else repr(identifier)
