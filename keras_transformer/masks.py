"""Masks: explicit boolean tensors in which `True` means "may attend" (section 3.2.3).

Keras's implicit masks (`_keras_mask`) are not used: attention layers that share an encoder's output
lose it on the way, without an error.
"""

import keras
from keras import ops


def padding_mask(tokens, pad_id=0):
    """Returns which keys are real: `tokens != pad_id`.

    Args:
        tokens: Token ids, `[B, S]`, integer.
        pad_id: Id of the padding token.

    Returns:
        Boolean tensor `[B, 1, S]`, the same for every query.
    """
    return ops.expand_dims(ops.not_equal(tokens, pad_id), axis=1)  # [B, T=1, S]


def causal_mask(length):
    """Returns which keys come no later than the query: position `i` may attend to `j <= i`.

    Args:
        length: Number of positions T, an integer or a scalar tensor.

    Returns:
        Boolean tensor `[1, T, T]`, the same for every sentence.

    Reference: Vaswani et al. (2017), section 3.2.3, third item.
    """
    positions = ops.arange(length, dtype="int32")  # [T]
    queries, keys = ops.expand_dims(positions, axis=1), ops.expand_dims(positions, axis=0)
    return ops.expand_dims(ops.greater_equal(queries, keys), axis=0)  # [1, T, T]


@keras.saving.register_keras_serializable(package="keras_transformer")
class PaddingMask(keras.Layer):
    """`padding_mask` as a layer, so that it has a name in a functional model.

    Args:
        pad_id: Id of the padding token.

    Call arguments:
        tokens: Token ids, `[B, S]`, integer.

    Returns:
        Boolean tensor `[B, 1, S]`.
    """

    def __init__(self, pad_id=0, **kwargs):
        super().__init__(**kwargs)
        self.pad_id = pad_id
        self.built = True

    def call(self, tokens):  # noqa: D102
        return padding_mask(tokens, self.pad_id)

    def compute_output_spec(self, tokens):  # noqa: D102
        batch, length = tokens.shape
        return keras.KerasTensor((batch, 1, length), dtype="bool")

    def get_config(self):  # noqa: D102
        return {**super().get_config(), "pad_id": self.pad_id}
