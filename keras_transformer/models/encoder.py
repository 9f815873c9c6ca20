"""Base class of encoder-only models: an input, an encoder and a head."""

from typing import Any

from keras_transformer.layers.blocks.encoder import Encoder
from keras_transformer.layers.masks import fitting_masks
from keras_transformer.models.model import ConfiguredModel, FigureColumn, named_weights
from keras_transformer.models.parts import Parts
from keras_transformer.tensors import Tensor


class EncoderModel(ConfiguredModel):
    """Base class of models with an input, an encoder and a head.

    A subclass names the classes of its configuration, its input and its head.

    Attributes:
        input_class: Class of the input, a `ModelInput`.
        head_class: Class of the head, a `Head`.
    """

    input_class: Any = None
    head_class: Any = None

    def make_parts(self, config: Any, policy: Any, kernels: Any) -> Parts:  # noqa: D102
        inputs = self.input_class(config, policy, kernels)
        return Parts(
            input=inputs,
            encoder=self.encoder_of(config, policy, kernels),
            decoder=None,
            head=self.make_head(config, policy, kernels, inputs.embeddings),
        )

    @classmethod
    def make_head(cls, config: Any, policy: Any, kernels: Any, embeddings: Any = ()) -> Any:
        """Returns the head that a configuration describes.

        Args:
            config: The configuration of the model.
            policy: Dtype policy of the layers.
            kernels: The `Kernels` of the layers.
            embeddings: The layers that embed tokens, for a head with tied weights.
        """
        return cls.head_class(config, policy, kernels)

    def encoder_of(self, config: Any, policy: Any, kernels: Any) -> Any:
        """Returns the encoder of a model with this configuration."""
        return self.make_encoder(config.encoder, policy, kernels)

    def make_encoder(self, stack: Any, policy: Any, kernels: Any, causal: bool = False) -> Any:
        """Returns the encoder that a `StackConfig` describes."""
        return Encoder.from_stack(
            stack, causal=causal, dtype=policy, kernels=kernels, name="encoder"
        )

    def roles(self, parts: Any) -> dict[str, Any]:  # noqa: D102
        encoder = getattr(parts.encoder, "roles", {"encoder": parts.encoder})
        return {**parts.input.layers, **encoder, **parts.head.layers}

    def connect(self, parts: Any, inputs: Any) -> Tensor:  # noqa: D102
        padding_mask = parts.input.padding_mask(inputs)  # [B, 1, S], or None
        x = parts.input(inputs)  # [B, S, D]
        x = parts.encoder(x) if padding_mask is None else parts.encoder(x, padding_mask)
        return parts.head(x, inputs, padding_mask)

    @fitting_masks()  # the mask is computed from the same tokens as the embedding
    def call(self, inputs: Any, training: bool | None = None, mask: Tensor | None = None) -> Tensor:  # noqa: D102
        return super().call(inputs, training=training, mask=mask)

    @property
    def columns(self) -> tuple[FigureColumn, ...]:  # noqa: D102
        if not self.config.has_vocabulary:
            return super().columns
        tokens, head = self.parts.input, self.parts.head
        return (
            FigureColumn("text", "S", tokens.embedding, self.encoder, head.drawn, tokens.segments),
        )

    @fitting_masks()
    def attention_weights(self, inputs: Tensor) -> dict[str, Tensor]:
        """Returns the attention weights of all layers and heads, without dropout.

        Args:
            inputs: The inputs of the model.

        Returns:
            Dictionary from `"encoder/block_0/self_attention"` and so on to `[B, H, S, S]`: input,
            head, query position, key position. With images, S includes the class token.
        """
        x = self.parts.input(inputs, training=False)  # [B, S, D]
        padding_mask = self.parts.input.padding_mask(inputs)  # [B, 1, S]
        _, weights = self.encoder(x, padding_mask, return_attention_scores=True, training=False)
        return named_weights(self.encoder, weights)
