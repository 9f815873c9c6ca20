"""Rotary positions, which rotate the query and key heads of self-attention."""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_positive
from keras_transformer.config.positions import ROTARY_BASE
from keras_transformer.layers.positions.position import AttentionPosition
from keras_transformer.layers.positions.tables import rows_or_nan, sinusoids
from keras_transformer.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class Rotary(AttentionPosition):
    """Rotates query and key heads, so that their dot products depend only on distances.

    The features i and i + K / 2 of a head are a point in the plane, which is rotated by the angle
    `pos / base^(2i / K)`. Differs from the paper, which adds positions to the embeddings.

    Args:
        max_length: Maximum number of positions. Heads at later positions are NaN, or an error on
            devices that check indices.
        base: Base of the wavelengths. A larger base, as in newer models for long texts, rotates the
            last features more slowly.

    Reference: Su et al. (2021), "RoFormer: Enhanced Transformer with Rotary Position Embedding",
        Eq. 34, with the pairs of GPT-NeoX.
    """

    kind = "rotary"

    def __init__(self, max_length: int = 512, base: float = ROTARY_BASE):
        check_positive("base", base)
        self.max_length, self.base = max_length, base

    @classmethod
    def of_attention(cls, config: Any) -> "Rotary":  # noqa: D102
        return cls(config.max_length, config.rotary_base or ROTARY_BASE)

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:  # noqa: D102
        size = heads.shape[-1]
        if size % 2:
            raise ValueError(
                "`d_k` must be even for rotary positions, which rotate pairs of features. "
                f"Received: d_k={size}."
            )
        waves = sinusoids(self.max_length, size, "halves", base=self.base)
        table = ops.cast(waves, "float32")  # [L, K]
        waves = ops.take(table, positions, axis=0)  # [T, K] or [K]
        waves = ops.cast(rows_or_nan(waves, positions, self.max_length), heads.dtype)
        sine, cosine = waves[..., : size // 2], waves[..., size // 2 :]
        one, two = heads[..., : size // 2], heads[..., size // 2 :]  # [B, H, T, K / 2]
        return ops.concatenate([one * cosine - two * sine, two * cosine + one * sine], axis=-1)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {"max_length": self.max_length, "base": self.base}
