"""`Norm`, the interface of the normalisations of a block."""

from __future__ import annotations

from typing import Any

from keras_transformer.lazy_keras import keras
from keras_transformer.variants import Variant


class Norm(Variant):
    """Base class of normalisations: a value that makes a Keras layer.

    A subclass needs a `kind`, its name in configurations. For example,

        @dataclasses.dataclass(frozen=True)
        class UnitLength(Norm):
            kind = "unit"

            def layer(self, policy, name):
                return keras.layers.UnitNormalization(dtype=policy, name=name)

    Attributes:
        is_identity: Whether its layer returns its input.
    """

    option = "normalization"
    package = "keras_transformer.norms"
    is_identity = False

    def layer(self, policy: Any, name: str) -> keras.Layer:
        """Returns a layer that maps `[..., D]` to `[..., D]`.

        Args:
            policy: The dtype policy.
            name: Name of the layer.
        """
        raise NotImplementedError
