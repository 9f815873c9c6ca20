"""Tokens as the input of a model: embedding, segments and padding mask."""

from typing import Any

import keras

from keras_transformer.config.rules import OutputRules
from keras_transformer.layers.call_checks import check_ids
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.inputs.embedding import PositionalEmbedding
from keras_transformer.layers.inputs.language_codes import LanguageCodes
from keras_transformer.layers.inputs.segments import Segments, separator_of
from keras_transformer.layers.masks import PaddingMask
from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.tensors import Tensor


class EmbeddedTokens(ModelInput):
    """Embeds token ids `[B, S]`.

    Args:
        config: The `ModelConfig`.
        policy: Dtype policy of the layers.
        kernels: The `Kernels` of the layers.
        side: Prefix of the names of the layers, such as `"source_"`.
        name: Name of the embedding. `None`: `side` followed by `"embedding"`.
    """

    dtype = "int32"
    counts_tokens = True

    def __init__(self, config, policy, kernels, side="", name=None):
        self.side, self.name = side, name or f"{side}embedding"
        super().__init__(config, policy, kernels)
        self.mask = self.layers[f"{side}mask"]
        self.embedding = self.layers[f"{side}embedding"]
        self.embeddings = (self.embedding,)
        self.segments = self.layers.get("segments")
        self.norm: Any = self.layers.get("embedding_norm")
        self.dropout: Any = self.layers.get("embedding_dropout")
        self.projection: Any = self.layers.get("projection")
        self.languages = self.layers.get(f"{side}languages")

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        tokens, size = config.input, config.input.vocab_size
        embedding = make_embedding(tokens, size, config.stacks[0], policy, kernels, self.name)
        layers = {
            f"{self.side}mask": PaddingMask(tokens.pad_id, name=f"{self.side}mask"),
            f"{self.side}embedding": embedding,
        }
        if tokens.segments != "none":
            layers["segments"] = Segments(*separator_of(tokens), dtype=policy, name="segments")
        if tokens.embedding_size is not None:
            stack = config.stacks[0]
            layers["embedding_norm"] = stack.block.normalization.layer(policy, "input_norm")
            layers["embedding_dropout"] = Dropout(
                config.encoder.block.dropout, dtype=policy, name="input_dropout"
            )
            layers["projection"] = keras.layers.Dense(
                stack.d_model, dtype=policy, name="input_projection"
            )
        place = getattr(config.head, "rules", OutputRules()).language_codes
        if place != "none":
            name = f"{self.side}languages"
            place = "before" if place == "before" else "after"
            layers[name] = LanguageCodes(place, tokens.pad_id, name=name)
        return layers

    @property
    def roles(self) -> dict[str, Any]:  # noqa: D102
        return {name.removeprefix(self.side): layer for name, layer in self.layers.items()}

    def symbol(self) -> Tensor:  # noqa: D102
        return keras.Input((None,), dtype="int32", name=self.side.strip("_") or "tokens")

    def check(self, inputs, model) -> None:  # noqa: D102
        name = self.side.strip("_") or "tokens"
        check_ids(inputs, name, model, self.config.input.vocab_size)

    def read(self, inputs) -> Tensor:
        """Returns the token ids in the order in which they are embedded, `[B, S]`."""
        return inputs if self.languages is None else self.languages(inputs)

    def padding_mask(self, inputs) -> Tensor | None:  # noqa: D102
        return self.mask(inputs)

    def __call__(self, inputs, training=None, cutoff=None) -> Tensor:
        """Returns the input of the first stack, `[B, S, D]`.

        Args:
            inputs: Token ids `[B, S]`, in the order in which they are embedded.
            training: Whether dropout is active.
            cutoff: Function from the token ids to the embeddings that are kept, boolean `[B, S]`.
                `None`: all are kept.
        """
        kept = {} if cutoff is None else {"kept": cutoff(inputs)}
        x = self.embedding(inputs, training=training, **kept)  # [B, S, D]
        if self.segments is not None:
            x = self.segments(x, inputs)
        if self.projection is None:
            return x
        x = self.dropout(self.norm(x), training=training)
        return self.projection(x)  # from the width of the embedding to D


class SharedEmbedding(PositionalEmbedding):
    """An embedding that shares the table of another one but has its own positions and dropout."""

    def __init__(self, other, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._other = [other]  # in a list, so that Keras does not save its weights twice

    def build(self, inputs_shape=None) -> None:  # noqa: D102
        (other,) = self._other
        if not other.built:
            other.build(inputs_shape)
        self.table = other.table
        self.position.build(self)


def make_embedding(
    tokens, vocab_size, stack, policy, kernels, name, shared=None
) -> PositionalEmbedding:
    """Returns the token embedding before a stack.

    Args:
        tokens: A `TokenInput`.
        vocab_size: Size of the vocabulary.
        stack: The `StackConfig`.
        policy: Dtype policy of the layer.
        kernels: The `Kernels` of the layer.
        name: Name of the layer.
        shared: The embedding whose table it shares. `None`: it has its own table.
    """
    width = getattr(tokens, "embedding_size", None)
    arguments = [
        *(vocab_size, width or stack.d_model, stack.embedded_position),
        *(stack.max_length, 0.0 if width else stack.embedding_dropout),
    ]
    options = {"scale": tokens.embedding_scale, "dtype": policy, "kernels": kernels, "name": name}
    if shared is None:
        return PositionalEmbedding(*arguments, **options)
    return SharedEmbedding(shared, *arguments, **options)


def embeds_alike(stack, other) -> bool:
    """Returns `True` if two stacks can share an embedding, including positions and dropout."""
    ours, theirs = ((s.embedded_position, s.max_length) for s in (stack, other))
    return ours == theirs and stack.embedding_dropout == other.embedding_dropout
