"""Layer normalisation of the vector of a text."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from keras_transformer.lazy_keras import keras
from keras_transformer.tasks.embedding.modules.module import VectorModule
from keras_transformer.variants import declared

EPSILON = 1e-5  # PyTorch's default, which the files do not state


@declared
class VectorNorm(VectorModule):
    """Layer normalisation with a scale and a shift (Ba et al., 2016)."""

    kind = "layer_norm"
    about = "layer normalisation"
    published = "LayerNorm"
    weights: ClassVar = {"norm.weight": ("gamma", False), "norm.bias": ("beta", False)}

    def layer(self, width: int, dtype: Any, name: str) -> keras.Layer:  # noqa: D102
        return keras.layers.LayerNormalization(epsilon=EPSILON, dtype=dtype, name=name)

    @classmethod
    def read(cls, settings: Any, shapes: Any) -> Self:  # noqa: D102
        settings.count("dimension")
        return cls()
