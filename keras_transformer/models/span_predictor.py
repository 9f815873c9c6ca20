"""A question and a passage to the first and the last token of the answer: a head for an encoder."""

import keras
from keras import ops

from keras_transformer.config.span_predictor import SpanPredictorConfig
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.masks import PaddingMask
from keras_transformer.models.base import make_embedding, make_logits
from keras_transformer.models.encoder_only import EncoderModel

OUTSIDE = -1e9  # the logit of what is no part of a passage


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
        tokens: See `PassageMask`.

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


@keras.saving.register_keras_serializable(package="keras_transformer")
class PassageMask(keras.Layer):
    """Logits of the separator and of the passage; those of all other tokens become `OUTSIDE`.

    Args:
        pad_id, bos_id, eos_id: Ids of padding, of the separator, and of the end.

    Call arguments:
        logits: `[B, S, 2]`, float32.
        tokens: Token ids `[B, S]`: of a question, `bos_id`, of a passage, `eos_id` and padding.

    Returns:
        `[B, S, 2]`.
    """

    def __init__(self, pad_id, bos_id, eos_id, **kwargs):
        super().__init__(**kwargs)
        self.pad_id, self.bos_id, self.eos_id = pad_id, bos_id, eos_id

    def call(self, logits, tokens):  # noqa: D102
        passage = after_separator(tokens, self.bos_id)  # [B, S]
        for token in (self.pad_id, self.eos_id):
            passage = ops.logical_and(passage, ops.not_equal(tokens, token))
        return ops.where(ops.expand_dims(passage, 2), logits, OUTSIDE)  # [B, S, 2]

    def get_config(self):  # noqa: D102
        ids = {name: getattr(self, name) for name in ("pad_id", "bos_id", "eos_id")}
        return {**super().get_config(), **ids}


@keras.saving.register_keras_serializable(package="keras_transformer")
class SpanPredictor(EncoderModel):
    """The encoder of Fig. 1 with a linear map to the begin and the end of an answer.

    Args:
        config: A `SpanPredictorConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` that the layers compute with; a file does not keep them.

    Call arguments:
        inputs: Token ids `[B, S]`, integer: those of a question, `bos_id`, those of a passage,
            `eos_id`; padding comes after it.

    Returns:
        Logits `[B, S, 2]` of the first and the last token of the answer, both those of `bos_id` if
        the passage does not hold it; -1e9 in the question and from `eos_id` on; float32 under the
        mixed policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import SpanPredictor, SpanPredictorConfig
        >>> model = SpanPredictor(SpanPredictorConfig.preset("tiny", vocab_size=100))
        >>> tokens = np.array([[7, 2, 8, 9, 3]])  # a question of one token, a passage of two
        >>> (model(tokens).numpy()[0, :, 0] > -1e9).tolist()
        [False, True, True, True, False]

    Differs from the paper: it has no answers; the blocks, their dropout and the embedding are the
    paper's (sections 3.1, 3.4, 3.5 and 5.4).

    Reference: Devlin et al. (2019), sections 4.2 and 4.3, where the first token is what `bos_id` is
    here.
    """

    config_class = SpanPredictorConfig

    def __init__(self, config="base", dtype=None, name="span_predictor", **kwargs):
        super().__init__(config, dtype, name, **kwargs)

    def _make_layers(self, config, policy, kernels):
        ids = {name: getattr(config, name) for name in ("pad_id", "bos_id", "eos_id")}
        return {
            "mask": PaddingMask(config.pad_id, name="mask"),
            "embedding": make_embedding(config, config.vocab_size, policy, kernels, "embedding"),
            "segments": Segments(config.bos_id, dtype=policy, name="segments"),
            "encoder": Encoder.from_stack(
                config.stack, dtype=policy, kernels=kernels, name="encoder"
            ),
            "dropout": Dropout(config.dropout, dtype=policy, name="dropout"),
            "output_layer": keras.layers.Dense(2, dtype=policy, name="output"),
            "logits": make_logits(policy),
            "passage": PassageMask(**ids, dtype="float32", name="passage"),
        }

    def _connect(self, config, layers, inputs):
        allowed = layers["mask"](inputs)  # [B, 1, S]
        x = layers["segments"](layers["embedding"](inputs), inputs)  # [B, S, D]
        x = layers["encoder"](x, allowed)
        logits = layers["logits"](layers["output_layer"](layers["dropout"](x)))  # [B, S, 2]
        return layers["passage"](logits, inputs)

    @property
    def columns(self):  # noqa: D102
        (column,) = super().columns
        return (column._replace(segments=self.segments),)

    def embed(self, inputs):  # noqa: D102
        return self.segments(super().embed(inputs), inputs)
