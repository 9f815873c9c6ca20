"""Position encodings (section 3.5; Table 3, row E).

To add a position encoding, write a class in a file of its own, and add its name to `KINDS` here and
to the choices of `BlockConfig.position`, which must not import this module because it imports
Keras.
"""

from typing import Any

import keras

from keras_transformer.checks import check_choice
from keras_transformer.layers.positions.alibi import Alibi
from keras_transformer.layers.positions.binary import Binary
from keras_transformer.layers.positions.disentangled import Disentangled
from keras_transformer.layers.positions.position import AttentionPosition, Position, distances
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
    "AttentionPosition",
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
        identifier: A `Position`, a name in `KINDS`, or the result of `serialize`.
        **options: Arguments of the constructor, if `identifier` is a name.

    Raises:
        ValueError: If the name is unknown.
    """
    if isinstance(identifier, Position):
        return identifier
    if isinstance(identifier, dict):
        return keras.saving.deserialize_keras_object(identifier)
    check_choice("position", identifier, KINDS)
    return KINDS[identifier](**options)


def of_embedding(config) -> Position:
    """Returns the `Position` of the embedding that a `TransformerConfig` describes."""
    return KINDS[config.position].of_embedding(config)


def of_attention(config) -> Position:
    """Returns the `Position` of the self-attention that a `BlockConfig` describes."""
    return KINDS[config.position_in_attention].of_attention(config)


def serialize(position) -> dict[str, Any]:
    """Returns a `Position` as a dictionary of plain values."""
    return keras.saving.serialize_keras_object(position)
