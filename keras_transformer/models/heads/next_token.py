"""Head that predicts the next token, with output weights tied to an embedding or separate."""

from typing import Any

import keras

from keras_transformer.models.heads.head import Head, make_logits, with_mask
from keras_transformer.models.heads.output_weights import OwnWeights, TiedWeights
from keras_transformer.tensors import Tensor


class NextTokenLogits(Head):
    """Logits of the next token at each position.

    Args:
        embedding: The embedding before the last stack; if weights are tied, its table is also the
            output weights.

    Attributes:
        weights: The `OutputWeights`.
    """

    def make_layers(self, config, policy, kernels, embedding) -> dict[str, Any]:  # noqa: D102
        logits = make_logits(policy, config.head.output_bias)
        if config.head.is_tied:
            output = embedding
            self.weights = TiedWeights(output, logits, kernels)
        else:
            output = keras.layers.Dense(
                config.output_size, use_bias=False, dtype=policy, name="output"
            )
            self.weights = OwnWeights(output, logits, kernels)
        return {"output_layer": output, "logits": logits}

    def __call__(self, hidden, inputs=None, allowed=None) -> Tensor:  # noqa: D102
        return with_mask(self.weights.project(hidden), inputs, self.config)  # [B, T, V]
