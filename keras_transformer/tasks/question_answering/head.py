"""Head that predicts an answer span: its first and last token in a passage."""

from typing import Any

import keras
from keras import ops

from keras_transformer.config.pair_layout import LAYOUTS
from keras_transformer.models.heads.head import LinearHead
from keras_transformer.tensors import Tensor

OUTSIDE = -1e9  # logit of a token outside the passage


@keras.saving.register_keras_serializable(package="keras_transformer")
class PassageMask(keras.Layer):
    """Replaces the logits of all tokens except `bos_id` and the passage by `OUTSIDE`.

    Args:
        pad_id, bos_id, eos_id: Ids of padding, of "no answer" and of the end.
        pair_layout: Name of a `PairLayout`.

    Call arguments:
        logits: `[B, S, 2]`, float32.
        tokens: Token ids `[B, S]` in that layout, then padding.

    Returns:
        `[B, S, 2]`.
    """

    def __init__(self, pad_id, bos_id, eos_id, pair_layout="separator", **kwargs):
        super().__init__(**kwargs)
        self.pad_id, self.bos_id, self.eos_id = pad_id, bos_id, eos_id
        self.pair_layout = pair_layout

    def call(self, logits, tokens) -> Tensor:  # noqa: D102
        layout = LAYOUTS[self.pair_layout]
        separator = ops.equal(tokens, getattr(self, layout.separator))  # [B, S]
        before = ops.cumsum(ops.cast(separator, "int32"), axis=1)
        passage = ops.equal(before, layout.separators)
        for token in (self.pad_id, self.eos_id):
            passage = ops.logical_and(passage, ops.not_equal(tokens, token))
        passage = ops.logical_or(passage, ops.equal(tokens, self.bos_id))
        return ops.where(ops.expand_dims(passage, 2), logits, OUTSIDE)  # [B, S, 2]

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        names = ("pad_id", "bos_id", "eos_id", "pair_layout")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


class SpanLogits(LinearHead):
    """Linear layer with two logits for each token of the passage: first and last token."""

    def units(self, config) -> int:  # noqa: D102
        return 2

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        ids, layout = config.tokens, config.head.pair_layout
        passage = PassageMask(
            ids.pad_id, ids.bos_id, ids.eos_id, layout, dtype="float32", name="passage"
        )
        return {**super().make_layers(config, policy, kernels), "passage": passage}

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        return self.layers["passage"](super().__call__(hidden), inputs)  # [B, S, 2]
