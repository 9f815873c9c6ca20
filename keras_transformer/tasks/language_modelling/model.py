"""Causal language model: a decoder without encoder and cross-attention (Fig. 1, right)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.blocks.encoder import Encoder
from keras_transformer.layers.row_places import RowPlaces
from keras_transformer.models.heads.next_token import NextTokenLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.models.model import (
    ConfiguredModel,
    FigureColumn,
    Prediction,
    TokenOutput,
    named_weights,
)
from keras_transformer.models.parts import Parts
from keras_transformer.tasks.language_modelling.config import LanguageModelConfig
from keras_transformer.tasks.language_modelling.layers import TextsOfRows
from keras_transformer.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class LanguageModel(TokenOutput, ConfiguredModel):
    """Causal language model: embedding, causal blocks without cross-attention, and output weights.

    Args:
        config: A `LanguageModelConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, T]`, integer, each text beginning with `bos_id`. Padding, `pad_id`,
            comes after the text and needs no mask, as no position attends to later ones.

    Returns:
        Logits `[B, T, V]` of the next token at each position; float32 under mixed-precision
        policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import LanguageModel
        >>> from keras_transformer.models import LanguageModelConfig
        >>> model = LanguageModel(LanguageModelConfig.preset("tiny", vocab_size=100))
        >>> model(np.ones((2, 5), "int32")).shape
        TensorShape([2, 5, 100])

    Differs from the paper: as there is no encoder, the blocks have no cross-attention; see Liu et
    al. (2018), "Generating Wikipedia by Summarizing Long Sequences".
    """

    config_class = LanguageModelConfig
    default_name = "language_model"

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Calls the model; raises `TypeError` for rows of several texts.

        Of such a dictionary Keras would silently use only the tokens.
        """
        if isinstance(inputs, dict) and "documents" in inputs:
            raise TypeError(
                "`inputs` must be token ids [B, T]: rows of several texts go through "
                f"`hidden_states`. Received: a dictionary of {', '.join(inputs)}."
            )
        return super().__call__(inputs, *args, **kwargs)

    def make_parts(self, config: Any, policy: Any, kernels: Any) -> Parts:  # noqa: D102
        tokens = EmbeddedTokens(config, policy, kernels)
        return Parts(
            input=tokens,
            encoder=None,
            decoder=Encoder.from_stack(
                config.decoder, causal=True, dtype=policy, kernels=kernels, name="decoder"
            ),
            head=NextTokenLogits(config, policy, kernels, embedding=tokens.embedding),
        )

    def roles(self, parts: Any) -> dict[str, Any]:  # noqa: D102
        own = {"embedding": parts.input.embedding, "decoder": parts.decoder}
        return {**own, **parts.head.layers}

    def connect(self, parts: Any, inputs: Any) -> Tensor:  # noqa: D102
        return parts.head(parts.decoder(parts.input(inputs)), inputs)  # [B, T, V]

    def hidden_states(
        self,
        inputs: Tensor | dict[str, Tensor],
        training: bool | None = None,
        cutoff: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Returns the hidden states before the output weights, `[B, T, D]`.

        Args:
            inputs: The inputs of the model; or, for rows of several texts that do not attend to
                each other, a dictionary of integers `[B, T]`: `tokens`; `documents`, the number of
                the text of each token, increasing within a row; and `places`, the position of each
                token in its text.
            training: Whether dropout is active.
            cutoff: Function from token ids, as they are embedded, to a boolean tensor of their
                shape: which embeddings are kept, as in `PositionalEmbedding`. `None`: all.
        """
        if not isinstance(inputs, dict):
            x = self.parts.input(inputs, training=training, cutoff=cutoff)  # [B, T, D]
            return self.decoder(x, training=training)
        tokens, documents, places = (inputs[name] for name in ("tokens", "documents", "places"))
        # Only the embedding needs `places`: positions in attention depend on differences alone.
        kept = {} if cutoff is None else {"kept": cutoff(tokens)}
        x = self.embedding(tokens, places=places, training=training, **kept)  # [B, T, D]
        if self.config.decoder.has_state:  # which must not pass from one text to the next
            texts = TextsOfRows.of(places)
            return texts.joined(self.decoder(texts.apart(x), training=training))
        queries, keys = ops.expand_dims(documents, 2), ops.expand_dims(documents, 1)
        attention_mask = ops.equal(queries, keys)  # [B, T, T]
        if self.config.decoder.hides_start:  # the decoder only hides that of the first text
            first, others = (ops.equal(places, 0), ops.not_equal(places, 0))
            visible = ops.logical_or(ops.expand_dims(first, 2), ops.expand_dims(others, 1))
            attention_mask = ops.logical_and(attention_mask, visible)
        return self.decoder(x, attention_mask=attention_mask, training=training)

    def read(self, tokens: Tensor, count: Tensor | None = None) -> tuple[tuple[Tensor, ...], ...]:
        """Reads the first T positions in one pass, without dropout.

        Args:
            tokens: Token ids `[B, T]`, integer, beginning with `bos_id`.
            count: Number of positions that a search continues after, a scalar integer. `None`: T.

        Returns:
            Key and value heads, or the states of another mixer, for `decoder.recalled_cache`.
        """
        return self.decoder.read(self.embedding(tokens, training=False), count=count)

    def read_more(
        self, tokens: Tensor, past: tuple, start: Tensor | None = None
    ) -> tuple[Tensor, tuple]:
        """Reads T positions after earlier ones in one pass, without dropout.

        Args:
            tokens: Token ids `[B, T]`, integer.
            past: For each block, key and value heads of the P earlier positions, `[B, G, P, K]`,
                such as `read` or this method has returned; P = 0 before the first position.
            start: See `MultiHeadSelfAttention.read_more`.

        Returns:
            The hidden states `[B, T, D]`, and the heads of all positions, `[B, G, P + T, K]`.
        """
        place = ops.shape(past[0][0])[2] if start is None else start
        x = self.embedding(tokens, start=place, training=False)  # [B, T, D]
        return self.decoder.read_more(x, past, start)

    def step(
        self,
        tokens: Tensor,
        cache: tuple,
        index: Tensor,
        attention_mask: Tensor | None = None,
        slot: Tensor | None = None,
    ) -> Prediction:
        """Runs the model at one position, without dropout.

        Args:
            tokens: The token at this position in each of the N hypotheses of a text, `[B, N]`,
                integer; `bos_id` at position 0.
            cache: From `decoder.empty_cache` or the previous step.
            index: Index of the position, counted from 0; scalar integer.
            attention_mask: See `Transformer.step`.
            slot: See `MultiHeadSelfAttention.step`.

        Returns:
            A `Prediction`.
        """
        width = tokens.shape[1]
        x = ops.reshape(tokens, (-1, 1))  # [B * N, T=1]
        x = self.embedding(x, start=index, training=False)  # [B * N, 1, D]
        x = ops.reshape(x, (-1, width, self.config.d_model))  # [B, N, D]
        x, cache, _ = self.decoder.step(x, cache, index, attention_mask=attention_mask, slot=slot)
        return Prediction(self.output_weights.project(x), cache)

    def step_of_rows(
        self, tokens: Tensor, cache: tuple, counts: Tensor, slot: Tensor
    ) -> Prediction:
        """Runs the model at one new position of each of B texts, without dropout.

        Args:
            tokens: The token at the position in each text, `[B]`, integer.
            cache: For each block four tensors: key and value heads of R positions, of which a step
                fills one in each text, `[B, G, R, K]`; and those of P earlier positions, padded,
                `[B, G, P, K]`.
            counts: Number of the earlier positions of each text that are not padding, int32 `[B]`.
            slot: Number of steps since then, int32, a scalar from 0 to R - 1.

        Returns:
            A `Prediction`.

        Raises:
            ValueError: If the position encoding of a block is not `by_row`.
        """
        new, _, old, _ = cache[0]
        rows = RowPlaces.of(counts, ops.shape(old)[2], new.shape[2], slot)
        places = rows.queries[:, 0, 0]  # [B, 1]
        x = self.embedding(ops.expand_dims(tokens, 1), start=places, training=False)  # [B, 1, D]
        x, cache, _ = self.decoder.step(x, cache, rows)
        return Prediction(self.output_weights.project(x), cache)

    @property
    def columns(self) -> tuple[FigureColumn, ...]:  # noqa: D102
        return (FigureColumn("text", "T", self.embedding, self.decoder, self.parts.head.drawn),)

    def attention_weights(self, inputs: Tensor) -> dict[str, Tensor]:
        """Returns the attention weights of all layers and heads, without dropout.

        Args:
            inputs: The inputs of the model.

        Returns:
            Dictionary from `"decoder/block_0/self_attention"` and so on to `[B, H, T, T]`: text,
            head, query position, key position.
        """
        x = self.embedding(inputs, training=False)  # [B, T, D]
        _, weights = self.decoder(x, return_attention_scores=True, training=False)
        return named_weights(self.decoder, weights)
