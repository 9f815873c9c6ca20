"""Segments of a text: which of two texts a token belongs to."""

import keras
from keras import ops


def after_separator(tokens, bos_id):
    """Returns which tokens are the separator or come after it, boolean `[B, S]`."""
    return ops.cumsum(ops.cast(ops.equal(tokens, bos_id), "int32"), axis=1) > 0


@keras.saving.register_keras_serializable(package="keras_transformer")
class Segments(keras.layers.Layer):
    """Adds one learned vector to every token of a question, and another to all that follow.

    Args:
        bos_id: Id of the separator.

    Call arguments:
        x: `[B, S, D]`, floating.
        tokens: Token ids `[B, S]`, integer, with the separator `bos_id` among them.

    Returns:
        `[B, S, D]`.

    Reference: Devlin et al. (2019), section 3, "segment embedding".
    """

    def __init__(self, bos_id, **kwargs):
        super().__init__(**kwargs)
        self.bos_id = bos_id

    def build(self, x_shape, tokens_shape=None):  # noqa: D102
        self.table = self.add_weight(
            shape=(2, x_shape[-1]), initializer=keras.initializers.RandomNormal(), name="table"
        )

    def call(self, x, tokens):  # noqa: D102
        passage = ops.expand_dims(after_separator(tokens, self.bos_id), 2)  # [B, S, 1]
        table = ops.cast(self.table, x.dtype)
        return x + ops.where(passage, table[1], table[0])

    def get_config(self):  # noqa: D102
        return {**super().get_config(), "bos_id": self.bos_id}
