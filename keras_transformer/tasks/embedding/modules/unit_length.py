"""Division of a vector by its length between other layers."""

from __future__ import annotations

from typing import Any

from keras_transformer.lazy_keras import keras
from keras_transformer.tasks.embedding.modules.module import VectorModule
from keras_transformer.variants import declared


@declared
class VectorLength(VectorModule):
    """Scales vectors to unit length; after the last layer, `normalize` does so."""

    kind = "unit_length"
    about = "division by the length"
    published = "Normalize"

    def layer(self, width: int, dtype: Any, name: str) -> keras.Layer:  # noqa: D102
        return keras.layers.UnitNormalization(dtype=dtype, name=name)
