"""RMS normalisation, as in Llama and T5."""

from __future__ import annotations

from typing import Annotated, Any

from keras_transformer.arguments import option
from keras_transformer.checks import check_positive
from keras_transformer.lazy_keras import keras
from keras_transformer.norms.norm import Norm
from keras_transformer.variants import declared


@declared
class RMSNorm(Norm):
    """Divides by the root mean square of the features, and scales each feature.

    Args:
        **options: See `help(RMSNorm)`.

    Reference: Zhang and Sennrich (2019), "Root Mean Square Layer Normalization", Eq. 4.
    """

    kind = "rms"

    epsilon: Annotated[float, check_positive] = option(1e-6, "Number added to the mean square.")

    def layer(self, policy: Any, name: str) -> keras.Layer:  # noqa: D102
        from keras_transformer.normalization import RMSNormalization

        return RMSNormalization(self.epsilon, dtype=policy, name=name)
