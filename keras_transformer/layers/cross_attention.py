"""Multi-head attention of a sequence to another one (section 3.2.3, first item)."""

import keras

from keras_transformer.layers.masks import join_masks
from keras_transformer.layers.multi_head import MultiHeadAttention


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadCrossAttention(MultiHeadAttention):
    """Multi-head attention of one sequence to another: queries here, keys and values there.

    Args:
        num_heads: Number of heads H.
        d_k: Width of a query and key head. `None`: `d_model / num_heads`.
        d_v: Width of a value head. `None`: `d_model / num_heads`.
        dropout: Rate on the attention weights.
        use_bias: Whether the projections have a bias; or a list of those that have one, among
            `"query"`, `"key"`, `"value"` and `"output"`.
        score: Score of a query and a key: an `AttentionScore`, such as `Additive()`, or a name.
        num_key_value_heads: Number of key and value heads G, each shared by H / G query heads in a
            row (Ainslie et al., 2023). `None`: H.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: The attending side, `[B, T, D]`, floating.
        memory: The attended side, `[B, S, D]`, floating; the last axis may have another size.
        allowed: Boolean `[B, S]`, `True` where a key is real; or `[B, T, S]`, or 1 in place of B
            or T, `True` where a query may attend to a key. `None` allows everything.
        return_weights: Whether to return the attention weights as well.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`, which the output carries on. `None`: the mask that Keras attached
            to `x`, if it did.
        memory_mask: Boolean `[B, S]`, `True` where a key is real, joined with `allowed`. `None`:
            the mask that Keras attached to `memory`, if it did.

    Returns:
        `[B, T, D]`; with `return_weights` a pair of that and the weights `[B, H, T, S]`.

    Raises:
        ValueError: If D is not divisible by `num_heads` and `d_k` or `d_v` is missing.

    Example:
        >>> import keras
        >>> from keras_transformer import MultiHeadCrossAttention
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> output, weights = MultiHeadCrossAttention(num_heads=4)(x, memory, return_weights=True)
        >>> output.shape, weights.shape
        (TensorShape([2, 5, 16]), TensorShape([2, 4, 5, 7]))

    Reference: Vaswani et al. (2017), section 3.2.3, first item.
    """

    keys_of = {"allowed": "memory", "mask": "x", "memory_mask": "memory"}
    without_memory = "`MultiHeadSelfAttention`"

    def build(self, x_shape, memory_shape, allowed_shape=None):  # noqa: D102
        self._build_projections(x_shape, memory_shape)

    def call(  # noqa: D102
        self,
        x,
        memory,
        allowed=None,
        return_weights=False,
        training=None,
        mask=None,
        memory_mask=None,
    ):
        allowed = join_masks(allowed, memory_mask)  # [B, T, S]
        key, value = self.project_memory(memory)  # [B, G, S, K] twice
        attend = self.attend_with_weights if return_weights else self.attend
        return attend(self.project_query(x), key, value, allowed, training)

    def step(self, x, memory_heads, allowed=None, return_weights=False):
        """Attends from one position to a memory whose heads are projected.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            memory_heads: What `project_memory` returned.
            allowed: Boolean `[B, 1, S]` or `[B, N, S]`. `None` allows everything.
            return_weights: Whether to return the attention weights as well.

        Returns:
            `[B, N, D]`; with `return_weights` a pair of that and the weights `[B, H, N, S]`.
        """
        attend = self.attend_with_weights if return_weights else self.attend
        return attend(self.project_query(x), *memory_heads, allowed)
