"""Answers to questions about stories: a memory network, or an encoder, and one of a few answers."""

from typing import Any

import keras

from keras_transformer.layers.inputs.embedding import PositionalEmbedding
from keras_transformer.layers.masks import PaddingMask, fitting_masks
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import make_logits
from keras_transformer.models.heads.labels import LabelLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.models.model import FigureColumn, named_weights
from keras_transformer.models.parts import Parts
from keras_transformer.tasks.story_questions.config import StoryReaderConfig
from keras_transformer.tasks.story_questions.layers import MemoryHops
from keras_transformer.tensors import Tensor


class StoryTokens(EmbeddedTokens):
    """Embeds token ids `[B, S]`; for a memory network from all tables, without positions."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        memory, tokens = config.encoder, config.input
        if memory.has_blocks:
            return super().make_layers(config, policy, kernels)
        embedding = PositionalEmbedding(
            tokens.vocab_size,
            memory.tables * memory.d_model,
            "none",
            memory.max_length,
            scale=1.0,
            dtype=policy,
            kernels=kernels,
            name="embedding",
        )
        return {"mask": PaddingMask(tokens.pad_id, name="mask"), "embedding": embedding}


class AnswerLogits(LabelLogits):
    """A linear layer over the last state of the memory, or over a pooled encoder's output."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        if config.encoder.has_blocks:
            return super().make_layers(config, policy, kernels)
        units, normal = self.units(config), keras.initializers.RandomNormal(stddev=0.1)
        return {
            "output_layer": keras.layers.Dense(
                units, use_bias=False, kernel_initializer=normal, dtype=policy, name="output"
            ),
            "logits": make_logits(policy),
        }

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        if self.config.encoder.has_blocks:
            return super().__call__(hidden, inputs, padding_mask)
        return self.layers["logits"](self.layers["output_layer"](hidden))  # [B, C]

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        if self.config.encoder.has_blocks:
            return super().drawn
        return self.layers["output_layer"], self.layers["logits"]


@keras.saving.register_keras_serializable(package="keras_transformer")
class StoryReader(EncoderModel):
    """Answers a question about a story with one of a few answers.

    With `encoder="memory"` it is an end-to-end memory network: the sentences of the story are its
    memory, which it reads in several hops. With `encoder="transformer"` it is the encoder of Fig. 1
    over question and story, with pooling.

    Args:
        config: A `StoryReaderConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer: the question; for each sentence of the story, the
            oldest first, `bos_id` and its tokens; `eos_id`; padding.

    Returns:
        Logits `[B, C]`, one for each of `config.head.labels`;
        float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import StoryReader, StoryReaderConfig
        >>> config = StoryReaderConfig(encoder="memory", vocab_size=100, labels=("shed", "yard"))
        >>> tokens = np.array([[7, 8, 2, 9, 10, 2, 9, 11, 3]])  # two sentences of two tokens
        >>> StoryReader(config)(tokens).shape
        TensorShape([1, 2])

    Reference: Sukhbaatar et al. (2015), "End-To-End Memory Networks".

    Differs from Sukhbaatar et al.: an answer may have several words, so that the output weights
    are not tied to an embedding; all words of a sentence count, also full stops.
    """

    config_class = StoryReaderConfig
    input_class, head_class = StoryTokens, AnswerLogits
    default_name = "story_reader"

    def make_parts(self, config: Any, policy: Any, kernels: Any) -> Parts:  # noqa: D102
        if config.encoder.has_blocks:
            return super().make_parts(config, policy, kernels)
        ids = {name: getattr(config.input, name) for name in ("pad_id", "bos_id", "eos_id")}
        inputs = self.input_class(config, policy, kernels)
        return Parts(
            input=inputs,
            encoder=MemoryHops(
                config.encoder, **ids, dtype=policy, kernels=kernels, name="encoder"
            ),
            decoder=None,
            head=self.make_head(config, policy, kernels, inputs.embeddings),
        )

    def connect(self, parts: Any, inputs: Any) -> Tensor:  # noqa: D102
        if isinstance(parts.encoder, MemoryHops):
            return parts.head(parts.encoder(parts.input(inputs), inputs))
        return super().connect(parts, inputs)

    @property
    def columns(self) -> tuple[FigureColumn, ...]:  # noqa: D102
        if isinstance(self.encoder, MemoryHops):
            raise ValueError(
                "`model` must have blocks to be drawn as in Fig. 1. Received: a memory network."
            )
        return super().columns

    @fitting_masks()
    def attention_weights(self, inputs: Tensor) -> dict[str, Tensor]:
        """Returns the attention weights of all hops, or of all layers and heads of an encoder.

        Args:
            inputs: The inputs of the model.

        Returns:
            Dictionary from `"encoder/hop_0"` and so on to `[B, 1, 1, M]`: the weights of the
            memory's sentences, the most recent one first. For an encoder, see `EncoderModel`.
        """
        if not isinstance(self.encoder, MemoryHops):
            return super().attention_weights(inputs)
        x = self.parts.input(inputs, training=False)  # [B, S, tables * D]
        _, weights = self.encoder(x, inputs, return_attention_scores=True, training=False)
        return named_weights(self.encoder, weights)
