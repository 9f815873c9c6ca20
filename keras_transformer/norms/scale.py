"""Multiplication by a constant in place of a normalisation, as in ConvS2S."""

from __future__ import annotations

from typing import Annotated, Any

from keras_transformer.arguments import option
from keras_transformer.checks import check_positive
from keras_transformer.lazy_keras import keras
from keras_transformer.norms.norm import Norm
from keras_transformer.variants import declared


@declared
class Scale(Norm):
    """Multiplies by a constant: `sqrt(0.5)` keeps the variance of a sum of two terms.

    With `norm="post"` it scales each sum of a sublayer and its input.

    Args:
        **options: See `help(Scale)`.

    Reference: Gehring et al. (2017), "Convolutional Sequence to Sequence Learning", section 3.5.
    """

    kind = "scale"

    factor: Annotated[float, check_positive] = option(0.5**0.5, "The constant.")

    def layer(self, policy: Any, name: str) -> keras.Layer:  # noqa: D102
        return keras.layers.Rescaling(self.factor, dtype=policy, name=name)
