"""`Counter`: an encoder and a head that predicts one number for a text."""

import keras

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import Head, make_logits
from keras_transformer.models.heads.pooling import Pooling
from keras_transformer.models.inputs.tokens import EmbeddedTokens

from .config import CounterConfig


class Number(Head):
    """Mean over the tokens, a linear layer and a factor."""

    def make_layers(self, config, policy, kernels):
        return {
            "pooling": Pooling("mean", dtype=policy, name="pooling"),
            "linear": keras.layers.Dense(1, dtype=policy, name="linear"),
            "factor": keras.layers.Rescaling(config.head.factor, dtype=policy, name="factor"),
            "number": make_logits(policy),
        }

    def __call__(self, hidden, inputs=None, padding_mask=None):
        pooled = self.layers["pooling"](hidden, padding_mask)  # [B, D]
        number = self.layers["factor"](self.layers["linear"](pooled))
        return self.layers["number"](number)  # [B, 1]

    @property
    def drawn(self):
        return self.layers["pooling"], self.layers["linear"]


@keras.saving.register_keras_serializable(package="tally")
class Counter(EncoderModel):
    """An encoder whose head predicts one number for a text."""

    config_class = CounterConfig
    input_class, head_class = EmbeddedTokens, Number
    default_name = "counter"
