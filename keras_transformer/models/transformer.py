"""The Transformer as one functional Keras model (Fig. 1)."""

import typing

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.layers.call_checks import check_ids, check_same_batch
from keras_transformer.layers.decoder import Decoder
from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.masks import PaddingMask, fitting_masks
from keras_transformer.models.base import (
    Column,
    ConfiguredModel,
    TokenOutput,
    make_embedding,
    make_logits,
    named_weights,
    project,
)


class Prediction(typing.NamedTuple):
    """The decoder of a model at one position.

    Attributes:
        logits: Logits of the token that follows, `[B, N, V]`.
        cache: The cache with this position in it.
        weights: Those of the attention to the memory, of every block `[B, H, N, S]`. `None` unless
            they are asked for.
    """

    logits: typing.Any
    cache: tuple
    weights: tuple


@keras.saving.register_keras_serializable(package="keras_transformer")
class Transformer(TokenOutput, ConfiguredModel):
    """Encoder, decoder, embeddings and output weights of Fig. 1.

    An ordinary functional model: `compile`, `fit`, `summary`, `save` and `clone_model` work.

    Args:
        config: A `TransformerConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` that the layers compute with; a file does not keep them.

    Call arguments:
        inputs: Dictionary of `"source"`, token ids `[B, S]`, and `"target"`, token ids `[B, T]`;
            integer. A source ends in `eos_id`, a target starts with `bos_id`; padding, `pad_id`,
            comes after both.

    Returns:
        Logits `[B, T, V]` of the token that follows each target position; float32 under the mixed
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

    def __init__(self, config="base", dtype=None, name="transformer", **kwargs):
        super().__init__(config, dtype, name, **kwargs)

    def _make_inputs(self, config):
        return {
            side: keras.Input((None,), dtype="int32", name=side) for side in ("source", "target")
        }

    def _make_layers(self, config, policy, kernels):
        """The layers of the model, by role; tied embeddings are one layer in two roles."""

        def embedding(vocab_size, name):
            return make_embedding(config, vocab_size, policy, kernels, name)

        if config.tie == "all":
            source_embedding = target_embedding = embedding(config.vocab_size, "embedding")
        else:
            source_embedding = embedding(config.vocab_size, "source_embedding")
            target_embedding = embedding(config.output_size, "target_embedding")
        output = target_embedding
        if config.tie == "none":
            output = keras.layers.Dense(
                config.output_size, use_bias=False, dtype=policy, name="output"
            )
        return {
            "source_mask": PaddingMask(config.pad_id, name="source_mask"),
            "source_embedding": source_embedding,
            "target_embedding": target_embedding,
            "encoder": Encoder.from_stack(
                config.stack, dtype=policy, kernels=kernels, name="encoder"
            ),
            "decoder": Decoder.from_stack(
                config.decoder_stack, dtype=policy, kernels=kernels, name="decoder"
            ),
            "output_layer": output,
            "logits": make_logits(policy, config.output_bias),
        }

    def _connect(self, config, layers, inputs):
        """Figure 1: from token ids to logits."""
        hidden = _hidden(layers, inputs, config)  # [B, T, D]
        return project(layers["output_layer"], layers["logits"], hidden)  # [B, T, V]

    def __call__(self, inputs, *args, **kwargs):
        """Refuses ids of a wrong rank or dtype in one line, and calls the model."""
        if isinstance(inputs, dict):
            for side, tokens in inputs.items():
                check_ids(tokens, side, self)
            check_same_batch(inputs, self)
        return super().__call__(inputs, *args, **kwargs)

    @fitting_masks()  # they are made of the same tokens
    def call(self, inputs, training=None, mask=None):  # noqa: D102
        return super().call(inputs, training=training, mask=mask)

    @fitting_masks()
    def hidden_states(self, inputs, training=None):
        """Returns what the output weights turn into logits, `[B, T, D]`.

        Args:
            inputs: As for a call of the model.
            training: Whether dropout is active.
        """
        roles = ("source_mask", "source_embedding", "target_embedding", "encoder", "decoder")
        layers = {role: getattr(self, role) for role in roles}
        return _hidden(layers, inputs, self.config, training)

    @fitting_masks()
    def encode(self, source):
        """Runs the encoder without dropout.

        Args:
            source: Token ids `[B, S]`, integer.

        Returns:
            The memory `[B, S, D]` and which of its positions are real, boolean `[B, 1, S]`.
        """
        allowed = self.source_mask(source)
        x = self.source_embedding(source, training=False)
        return self.encoder(x, allowed, training=False), allowed

    def start(self, memory, length, width=1):
        """Returns an empty cache, and the memory's key and value heads.

        Args:
            memory: From `encode`.
            length: Positions of the cache L, a Python integer.
            width: Hypotheses of each sentence N, a Python integer.
        """
        cache = self.decoder.empty_cache(ops.shape(memory)[0], length, width)
        return cache, self.decoder.project_memory(memory)

    def step(
        self,
        tokens,
        cache,
        index,
        memory_heads,
        memory_allowed,
        allowed=None,
        output=None,
        return_weights=False,
    ):
        """Runs the decoder at one position, without dropout.

        Args:
            tokens: The token at this position in each of the N hypotheses of a sentence, `[B, N]`,
                integer; `bos_id` at position 0.
            cache: From `start` or the previous step.
            index: Number of the position, counting from 0; scalar integer.
            memory_heads: From `start`.
            memory_allowed: From `encode`.
            allowed: Boolean `[B, N, L * N]`: which hypothesis may attend to position `l` of
                hypothesis `m`, found at `l * N + m`. `None`: to every earlier one, for N = 1, or
                where the decoder has SSRUs.
            output: Function from hidden states `[B, N, D]` to logits, see `output_of`. `None`: to
                those of all tokens.
            return_weights: Whether to return the weights of the attention to the memory as well.

        Returns:
            A `Prediction`.
        """
        width = tokens.shape[1]
        x = ops.reshape(tokens, (-1, 1))  # [B * N, T=1]
        zero = self.config.starts_with_zeros
        x = self.target_embedding(x, start=index, training=False, zero_start=zero)  # [B * N, 1, D]
        x = ops.reshape(x, (-1, width, self.config.d_model))  # [B, N, D]
        x, cache, weights = self.decoder.step(
            x, cache, index, memory_heads, memory_allowed, allowed, return_weights
        )
        whole = output is None
        logits = project(self.output_layer, self.logits, x) if whole else output(x)  # [B, N, V]
        return Prediction(logits, cache, weights)

    @property
    def columns(self):  # noqa: D102
        head = (self.output_layer, self.logits)
        return (
            Column("source", "S", self.source_embedding, self.encoder),
            Column("target", "T", self.target_embedding, self.decoder, head),
        )

    @fitting_masks()
    def attention_weights(self, inputs):
        """Returns the attention weights of every layer and head, without dropout.

        Args:
            inputs: As for a call of the model.

        Returns:
            Dictionary from `"encoder/block_0/self_attention"`, `"decoder/block_0/self_attention"`,
            `"decoder/block_0/cross_attention"` and so on to `[B, H, T, S]`: sentence, head,
            attending position, attended position. A decoder with SSRUs has no self-attention.
        """
        source, target = (ops.convert_to_tensor(inputs[side]) for side in ("source", "target"))
        allowed = self.source_mask(source)  # [B, 1, S]
        x = self.source_embedding(source, training=False)  # [B, S, D]
        memory, of_encoder = self.encoder(x, allowed, return_weights=True, training=False)
        zero = self.config.starts_with_zeros
        x = self.target_embedding(target, training=False, zero_start=zero)  # [B, T, D]
        _, of_decoder = self.decoder(
            x, memory, memory_allowed=allowed, return_weights=True, training=False
        )
        return {
            **named_weights(self.encoder, of_encoder),
            **named_weights(self.decoder, of_decoder),
        }


def _hidden(layers, inputs, config, training=None):
    """Figure 1 up to the output weights."""
    zero = config.starts_with_zeros
    allowed = layers["source_mask"](inputs["source"])  # [B, 1, S]
    source = layers["source_embedding"](inputs["source"], training=training)  # [B, S, D]
    target = layers["target_embedding"](
        inputs["target"], training=training, zero_start=zero
    )  # [B, T, D]
    memory = layers["encoder"](source, allowed, training=training)  # [B, S, D]
    return layers["decoder"](target, memory, memory_allowed=allowed, training=training)  # [B, T, D]
