"""Multi-head cross-attention (section 3.2.3, first item)."""

from typing import Any

import keras

from keras_transformer.arguments import options_of, with_options
from keras_transformer.layers.masks import join_masks
from keras_transformer.layers.multi_head import MultiHeadAttention
from keras_transformer.mixers import CrossAttention
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(options_of(CrossAttention))
class MultiHeadCrossAttention(MultiHeadAttention):
    """Multi-head cross-attention: queries from one sequence, keys and values from another.

    Args:
        num_heads: Number of heads H; or a `CrossAttention` with all options.
        **options: The options of `CrossAttention`, and `name`, `dtype` and `trainable` as in every
            Keras layer.

    Call arguments:
        x: The sequence that attends, `[B, T, D]`, floating.
        memory: The sequence attended to, `[B, S, D]`, floating. Its width may differ from that of
            `x`.
        allowed: Boolean mask. `[B, S]` is `True` for keys that are not padding. `[B, T, S]` is
            `True` where a query may attend to a key; B and T may be 1. `None` allows everything.
        return_attention_scores: Whether to also return the attention weights.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`, passed on to the output. `None`: the mask that Keras attached to
            `x`, if any.
        memory_mask: Boolean `[B, S]`, `True` for keys that are not padding; combined with
            `allowed`. `None`: the mask that Keras attached to `memory`, if any.

    Returns:
        `[B, T, D]`; with `return_attention_scores`, a pair of this and the weights `[B, H, T, S]`.

    Raises:
        ValueError: If D is not divisible by `num_heads` and `d_k` or `d_v` is missing.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import MultiHeadCrossAttention
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> output, weights = MultiHeadCrossAttention(num_heads=4)(x, memory,
        return_attention_scores=True)
        >>> output.shape, weights.shape
        (TensorShape([2, 5, 16]), TensorShape([2, 4, 5, 7]))

    Reference: Vaswani et al. (2017), section 3.2.3, first item.
    """

    options_class = CrossAttention
    keys_of = {"allowed": "memory", "mask": "x", "memory_mask": "memory"}
    without_memory = "`MultiHeadSelfAttention`"

    def __init__(self, num_heads: int | CrossAttention, **options: Any):
        super().__init__(num_heads, **options)

    def build(
        self,
        x_shape: Shape,
        memory_shape: Shape,
        allowed_shape: Shape | None = None,
    ) -> None:  # noqa: D102
        self._build_projections(x_shape, memory_shape)

    def call(  # noqa: D102
        self,
        x: Tensor,
        memory: Tensor,
        allowed: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        allowed = join_masks(allowed, memory_mask)  # [B, T, S]
        key, value = self.project_memory(memory)  # [B, G, S, K] twice
        attend = self.attend_with_weights if return_attention_scores else self.attend
        return attend(self.project_query(x), key, value, allowed, training)

    def step(
        self,
        x: Tensor,
        memory_heads: tuple[Tensor, Tensor],
        allowed: Tensor | None = None,
        return_attention_scores: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attends from one position to a memory with projected heads.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            memory_heads: Key and value heads from `project_memory`.
            allowed: Boolean `[B, 1, S]` or `[B, N, S]`. `None` allows everything.
            return_attention_scores: Whether to also return the attention weights.

        Returns:
            `[B, N, D]`; with `return_attention_scores`, a pair of this and the weights `[B, H, N,
            S]`.
        """
        attend = self.attend_with_weights if return_attention_scores else self.attend
        return attend(self.project_query(x), *memory_heads, allowed)
