"""Blocks without normalisation."""

from __future__ import annotations

from typing import Any

from keras_transformer.lazy_keras import keras
from keras_transformer.norms.norm import Norm
from keras_transformer.variants import declared


@declared
class NoNorm(Norm):
    """No normalisation: a block adds the outputs of its sublayers to its input.

    Blocks then have no `"pre"` norm, and stacks none at their ends.
    """

    kind = "none"
    is_identity = True

    def layer(self, policy: Any, name: str) -> keras.Layer:  # noqa: D102
        return keras.layers.Identity(dtype=policy, name=name)
