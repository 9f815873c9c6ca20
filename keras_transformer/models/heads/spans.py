"""Head that predicts an answer span: its first and last token in a passage."""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers.inputs.segments import after_separator
from keras_transformer.models.heads.head import LinearHead
from keras_transformer.tensors import Tensor

OUTSIDE = -1e9  # logit of a token outside the passage


@keras.saving.register_keras_serializable(package="keras_transformer")
class PassageMask(keras.Layer):
    """Replaces the logits of all tokens except the separator and the passage by `OUTSIDE`.

    Args:
        pad_id, bos_id, eos_id: Ids of padding, of the separator and of the end.

    Call arguments:
        logits: `[B, S, 2]`, float32.
        tokens: Token ids `[B, S]`: question, `bos_id`, passage, `eos_id`, padding.

    Returns:
        `[B, S, 2]`.
    """

    def __init__(self, pad_id, bos_id, eos_id, **kwargs):
        super().__init__(**kwargs)
        self.pad_id, self.bos_id, self.eos_id = pad_id, bos_id, eos_id

    def call(self, logits, tokens) -> Tensor:  # noqa: D102
        passage = after_separator(tokens, self.bos_id)  # [B, S]
        for token in (self.pad_id, self.eos_id):
            passage = ops.logical_and(passage, ops.not_equal(tokens, token))
        return ops.where(ops.expand_dims(passage, 2), logits, OUTSIDE)  # [B, S, 2]

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        ids = {name: getattr(self, name) for name in ("pad_id", "bos_id", "eos_id")}
        return {**super().get_config(), **ids}


class SpanLogits(LinearHead):
    """Linear layer with two logits for each token of the passage: first and last token."""

    def units(self, config) -> int:  # noqa: D102
        return 2

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        ids = {name: getattr(config, name) for name in ("pad_id", "bos_id", "eos_id")}
        passage = PassageMask(**ids, dtype="float32", name="passage")
        return {**super().make_layers(config, policy, kernels), "passage": passage}

    def __call__(self, hidden, inputs=None, allowed=None) -> Tensor:  # noqa: D102
        return self.layers["passage"](super().__call__(hidden), inputs)  # [B, S, 2]
