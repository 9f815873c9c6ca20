"""The Transformer as a functional Keras model (Fig. 1), and the base class of its kind."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.blocks.decoder import Decoder
from keras_transformer.layers.blocks.encoder import Encoder
from keras_transformer.layers.call_checks import check_ids, check_same_batch
from keras_transformer.layers.masks import fitting_masks
from keras_transformer.models.heads.next_token import NextTokenLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens, embeds_alike, make_embedding
from keras_transformer.models.model import (
    ConfiguredModel,
    FigureColumn,
    Prediction,
    TokenOutput,
    named_weights,
)
from keras_transformer.models.parts import Parts
from keras_transformer.tensors import Tensor


class EncoderDecoderModel(TokenOutput, ConfiguredModel):
    """Base class of models with an encoder, a decoder and output weights.

    Its inputs are a dictionary of `"source"`, which the `ModelInput` of a subclass reads, and
    `"target"`, token ids `[B, T]`. In the methods, S is the number of positions of the encoder,
    which may differ from that of the source.
    """

    def make_input(self, config: Any, policy: Any, kernels: Any) -> Any:
        """Returns the `ModelInput` of the source."""
        raise NotImplementedError

    def shared_embedding(self, config: Any, source: Any) -> Any:
        """Returns the embedding whose table the target shares, or `None`."""
        return None

    def make_parts(self, config: Any, policy: Any, kernels: Any) -> Parts:  # noqa: D102
        source = self.make_input(config, policy, kernels)
        encoder = Encoder.from_stack(config.encoder, dtype=policy, kernels=kernels, name="encoder")
        decoder = TargetDecoder(config, policy, kernels, self.shared_embedding(config, source))
        return Parts(
            input=source,
            encoder=encoder,
            decoder=decoder,
            head=NextTokenLogits(config, policy, kernels, embedding=decoder.embedding),
        )

    def roles(self, parts: Any) -> dict[str, Any]:  # noqa: D102
        return {
            **parts.input.layers,
            "target_embedding": parts.decoder.embedding,
            "encoder": parts.encoder,
            "decoder": parts.decoder.stack,
            **parts.head.layers,
        }

    def symbols(self, parts: Any) -> dict[str, Any]:  # noqa: D102
        target = keras.Input((None,), dtype="int32", name="target")
        return {"source": parts.input.symbol(), "target": target}

    def connect(self, parts: Any, inputs: Any) -> Tensor:
        """Returns the logits for both sides, as in Fig. 1."""
        return parts.head(_states(parts, inputs)[0], inputs["target"])  # [B, T, V]

    def check_inputs(self, inputs: Any) -> None:
        """Checks shape, dtype and, where they are known, values of both sides."""
        if isinstance(inputs, dict):
            for side, tensor in inputs.items():
                if side == "source":
                    self.parts.input.check(tensor, self)
                else:
                    check_ids(tensor, side, self, self.config.output_size)
            check_same_batch(inputs, self)

    @fitting_masks()  # the masks are computed from the same tokens as the embeddings
    def call(self, inputs: Any, training: bool | None = None, mask: Tensor | None = None) -> Tensor:  # noqa: D102
        return super().call(inputs, training=training, mask=mask)

    @fitting_masks()
    def hidden_states(
        self,
        inputs: dict[str, Tensor],
        training: bool | None = None,
        cutoff: Callable[[Tensor], Tensor] | None = None,
        return_memory: bool = False,
    ) -> Any:
        """Returns the hidden states before the output weights, `[B, T, D]`.

        With `return_memory` it returns a tuple of them, of the memory `[B, S, D]`, the output of
        the encoder, and of its mask, boolean `[B, 1, S]`.

        Args:
            inputs: The inputs of the model.
            training: Whether dropout is active.
            cutoff: Function from token ids, as they are embedded, to a boolean tensor of their
                shape: which embeddings are kept, as in `PositionalEmbedding`. `None`: all.
            return_memory: See above.
        """
        states = _states(self.parts, inputs, training, cutoff)
        return states if return_memory else states[0]

    @fitting_masks()
    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Runs the encoder without dropout.

        Args:
            source: The source, such as token ids `[B, S]`.

        Returns:
            The memory `[B, S, D]`, and the mask of its positions that are not padding, boolean
            `[B, 1, S]`.
        """
        source = self.read_source(source)
        padding_mask = self.parts.input.padding_mask(source)
        x = self.parts.input(source, training=False)
        return self.encoder(x, padding_mask, training=False), padding_mask

    def read_source(self, source: Tensor) -> Tensor:
        """Returns the source in the order in which the encoder reads it.

        It is `source`, unless the model has `language_codes`.
        """
        return self.parts.input.read(source)

    def start(self, memory: Tensor, length: int, width: int = 1) -> tuple[tuple, tuple]:
        """Returns an empty cache, and the key and value heads of the memory.

        Args:
            memory: Memory from `encode`.
            length: Number of positions of the cache L, a Python integer.
            width: Number of hypotheses per sentence N, a Python integer.
        """
        cache = self.decoder.empty_cache(ops.shape(memory)[0], length, width)
        return cache, self.decoder.project_memory(memory)

    def read(
        self, tokens: Tensor, memory_heads: tuple, memory_attention_mask: Tensor
    ) -> tuple[tuple[Tensor, Tensor], ...]:
        """Reads the first T positions of a target in one pass, without dropout.

        Args:
            tokens: Token ids `[B, T]`, integer, beginning with `bos_id`.
            memory_heads: Key and value heads from `start`.
            memory_attention_mask: Mask from `encode`.

        Returns:
            Key and value heads for `decoder.recalled_cache`.
        """
        x = self.parts.decoder.embed(tokens, training=False)  # [B, T, D]
        return self.decoder.read(x, memory_heads, memory_attention_mask)

    def step(
        self,
        tokens: Tensor,
        cache: tuple,
        index: Tensor,
        memory_heads: tuple,
        memory_attention_mask: Tensor,
        attention_mask: Tensor | None = None,
        output: Callable[[Tensor], Tensor] | None = None,
        return_attention_scores: bool = False,
        slot: Tensor | None = None,
    ) -> Prediction:
        """Runs the decoder at one position, without dropout.

        Args:
            tokens: The token at this position in each of the N hypotheses of a sentence, `[B, N]`,
                integer; `bos_id` at position 0.
            cache: Cache from `start` or the previous step.
            index: Index of the position, counted from 0; scalar integer.
            memory_heads: Key and value heads from `start`.
            memory_attention_mask: Mask from `encode`.
            attention_mask: Boolean `[B, N, L * N]`, `True` where a hypothesis may attend to
                position `l` of hypothesis `m`, at index `l * N + m`. `None`, only for N = 1 or a
                decoder with another mixer: to all earlier positions.
            output: Function from hidden states `[B, N, D]` to logits, see
                `OutputWeights.of_tokens`. `None`: the logits of all tokens.
            return_attention_scores: Whether to also return the cross-attention weights.
            slot: See `MultiHeadSelfAttention.step`.

        Returns:
            A `Prediction`.
        """
        width = tokens.shape[1]
        x = ops.reshape(tokens, (-1, 1))  # [B * N, T=1]
        x = self.parts.decoder.embed(x, start=index, training=False)  # [B * N, 1, D]
        x = ops.reshape(x, (-1, width, self.config.d_model))  # [B, N, D]
        x, cache, weights = self.decoder.step(
            x,
            cache,
            index,
            memory_heads,
            memory_attention_mask,
            attention_mask,
            return_attention_scores,
            slot,
        )
        logits = (output or self.output_weights.project)(x)  # [B, N, V]
        return Prediction(logits, cache, weights)

    @property
    def columns(self) -> tuple[FigureColumn, ...]:  # noqa: D102
        source, head = self.parts.input, self.parts.head.drawn
        if not source.embeddings:
            return super().columns
        return (
            FigureColumn("source", "S", source.embedding, self.encoder),
            FigureColumn("target", "T", self.target_embedding, self.decoder, head),
        )

    @fitting_masks()
    def attention_weights(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns the attention weights of all layers and heads, without dropout.

        Args:
            inputs: The inputs of the model.

        Returns:
            Dictionary from `"encoder/block_0/self_attention"`, `"decoder/block_0/self_attention"`,
            `"decoder/block_0/cross_attention"` and so on to `[B, H, T, S]`: sentence, head, query
            position, key position. A decoder with another mixer has none to itself.
        """
        source, target = (ops.convert_to_tensor(inputs[side]) for side in ("source", "target"))
        source = self.read_source(source)
        padding_mask = self.parts.input.padding_mask(source)  # [B, 1, S]
        x = self.parts.input(source, training=False)  # [B, S, D]
        memory, encoder_weights = self.encoder(
            x, padding_mask, return_attention_scores=True, training=False
        )
        target = self.parts.decoder.read(target, inputs["source"])
        x = self.parts.decoder.embed(target, training=False)  # [B, T, D]
        _, decoder_weights = self.decoder(
            x,
            memory,
            memory_attention_mask=padding_mask,
            return_attention_scores=True,
            training=False,
        )
        return {
            **named_weights(self.encoder, encoder_weights),
            **named_weights(self.decoder, decoder_weights),
        }


class TargetDecoder:
    """Decoder of an encoder-decoder model: the embedding of the target, and the stack.

    Args:
        config: The `ModelConfig`.
        policy: Dtype policy of the layers.
        kernels: The `Kernels` of the layers.
        shared: The source embedding whose table it shares. `None`: it has its own table.

    Attributes:
        embedding: The `PositionalEmbedding`; that of the source itself if both are equal.
        embeddings: A tuple of this layer, as in a `ModelInput`.
        stack: The `Decoder`.
    """

    def __init__(self, config, policy, kernels, shared=None):
        if shared is not None and embeds_alike(config.encoder, config.decoder):
            self.embedding = shared
        else:
            self.embedding = make_embedding(
                config.tokens,
                config.output_size,
                config.decoder,
                policy,
                kernels,
                "target_embedding",
                shared,
            )
        self.embeddings = (self.embedding,)
        self.stack = Decoder.from_stack(
            config.decoder, dtype=policy, kernels=kernels, name="decoder"
        )
        self.zero_start = config.head.starts_with_zeros
        self.starts_with_language = config.head.rules.starts_with_language

    @property
    def roles(self) -> dict[str, Any]:
        """The layers by role: names that models of different kinds have in common."""
        return {"embedding": self.embedding, "": self.stack}

    def read(self, target, source) -> Tensor:
        """Returns the target's tokens as they are embedded, `[B, T]`.

        The first one may be the language of the target, which is the first token of the source.
        """
        if not self.starts_with_language:
            return target
        first = ops.cast(source[:, :1], target.dtype)
        return ops.concatenate([first, target[:, 1:]], axis=1)

    def embed(self, tokens, **options) -> Tensor:
        """Returns the embedding of target tokens, `[B, T, D]`."""
        return self.embedding(tokens, zero_start=self.zero_start, **options)


def _states(parts, inputs, training=None, cutoff=None):
    """Returns the hidden states `[B, T, D]`, the memory and its mask: Fig. 1 without a head."""
    source = parts.input.read(inputs["source"])  # [B, S]
    target = parts.decoder.read(inputs["target"], inputs["source"])  # [B, T]
    padding_mask = parts.input.padding_mask(source)  # [B, 1, S]
    kept = {} if cutoff is None else {"kept": cutoff(target)}
    source = parts.input(source, training=training, cutoff=cutoff)  # [B, S, D]
    target = parts.decoder.embed(target, training=training, **kept)  # [B, T, D]
    memory = parts.encoder(source, padding_mask, training=training)  # [B, S, D]
    hidden = parts.decoder.stack(
        target, memory, memory_attention_mask=padding_mask, training=training
    )  # [B, T, D]
    return hidden, memory, padding_mask


@keras.saving.register_keras_serializable(package="keras_transformer")
class Transformer(EncoderDecoderModel):
    """The model of Fig. 1: embeddings, encoder, decoder and output weights.

    An ordinary functional model: `compile`, `fit`, `summary` and `save` work. The logits carry the
    mask of target tokens that are not padding, which Keras's losses and metrics apply. A copy for
    searches and exports is `Transformer.from_config(model.get_config())`; `clone_model` returns a
    plain functional model.

    Args:
        config: A `TransformerConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Dictionary of `"source"`, token ids `[B, S]`, and `"target"`, token ids `[B, T]`;
            integer. A source ends in `eos_id`, and a target begins with `bos_id`; both are followed
            by padding, `pad_id`.

    Returns:
        Logits `[B, T, V]` of the next token at each target position; float32 under mixed-precision
        policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> source, target = np.ones((2, 7), "int32"), np.ones((2, 5), "int32")
        >>> model({"source": source, "target": target}).shape
        TensorShape([2, 5, 100])

    Reference: Vaswani et al. (2017), section 3 and Fig. 1.
    """

    config_class = TransformerConfig
    default_name = "transformer"

    def make_input(self, config: Any, policy: Any, kernels: Any) -> EmbeddedTokens:  # noqa: D102
        name = "embedding" if config.head.tie == "all" else "source_embedding"
        return EmbeddedTokens(config, policy, kernels, side="source_", name=name)

    def shared_embedding(self, config: Any, source: Any) -> Any:  # noqa: D102
        return source.embedding if config.head.tie == "all" else None
