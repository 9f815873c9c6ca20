"""Layer normalisation, as in the paper."""

from __future__ import annotations

from typing import Annotated, Any

from keras_transformer.arguments import option
from keras_transformer.checks import check_positive
from keras_transformer.lazy_keras import keras
from keras_transformer.norms.norm import Norm
from keras_transformer.variants import declared


@declared
class LayerNorm(Norm):
    """Subtracts the mean of the features, divides by their deviation, and scales each feature.

    Args:
        **options: See `help(LayerNorm)`.

    Reference: Ba et al. (2016); Vaswani et al. (2017), section 3.1.
    """

    kind = "layer"

    epsilon: Annotated[float, check_positive] = option(1e-6, "Number added to the variance.")
    offset: bool = option(True, "Adds a learned offset to each feature.")

    def layer(self, policy: Any, name: str) -> keras.Layer:  # noqa: D102
        from keras_transformer.normalization import LayerNormalization

        return LayerNormalization(self.epsilon, center=self.offset, dtype=policy, name=name)
