"""Encoder-decoders whose weights have the names of BART's in Hugging Face's format."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.generation import Generation
from keras_transformer.models.transformer import Transformer
from keras_transformer.norms import LayerNorm
from keras_transformer.positions import Learned, Position
from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.generation import ends_of, read_generation, special_ids
from keras_transformer.pretrained.names import ROW, TRANSPOSED, Layout, Weight, is_tied, layers
from keras_transformer.pretrained.settings import ACTIVATIONS

EPSILON = 1e-5  # of every layer normalisation: PyTorch's default, which no configuration changes
# Rows of a learned table of positions before that of the first position.
FIRST = 2
SIDES = {"encoder": "source", "decoder": "target"}
SHARED, OUTPUT, BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
TABLES = {side: f"model.{side}.embed_tokens.weight" for side in SIDES}
POSITIONS = {side: f"model.{side}.embed_positions.weight" for side in SIDES}
PROJECTIONS = {"q": "query", "k": "key", "v": "value", "out": "output_projection"}
SELF_ATTENTION = {f"self_attn.{a}_proj": f"self_attention.{b}" for a, b in PROJECTIONS.items()} | {
    "self_attn_layer_norm": "self_attention_norm"
}
CROSS_ATTENTION = {
    f"encoder_attn.{a}_proj": f"cross_attention.{b}" for a, b in PROJECTIONS.items()
} | {"encoder_attn_layer_norm": "cross_attention_norm"}
FEED_FORWARD = {
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
    "final_layer_norm": "feed_forward_norm",
}
BLOCKS = {
    "encoder": SELF_ATTENTION | FEED_FORWARD,
    "decoder": SELF_ATTENTION | CROSS_ATTENTION | FEED_FORWARD,
}
NORMS = {"layer_norm": "norm", "layernorm_embedding": "embedding_norm"}  # of a stack


class EncoderDecoderFamily(Family):
    """Base of the families whose weights have BART's names.

    Attributes:
        norm: Place of the normalisations, `"pre"` or `"post"`. Encoders and decoders with `"pre"`
            end with a normalisation.
        embedding_norm: Whether embeddings are normalised.
        learned: Whether positions are learned. Otherwise they are sinusoids.
        expressible: Settings that change what a model computes, with the values that ours has. A
            setting that is missing has the first of them.
    """

    model_class = Transformer
    norm, embedding_norm, learned = "pre", False, True
    expressible = {"is_encoder_decoder": (True,)}

    def config(self) -> TransformerConfig:  # noqa: D102
        settings, size = self.settings, self.settings.count("vocab_size")
        check_sizes(settings)
        settings.check(self.expressible)
        return TransformerConfig(
            vocab_size=size,
            **sizes_and_dropout(settings),
            norm=self.norm,
            embedding_norm=self.embedding_norm,
            normalization=LayerNorm(EPSILON),
            tie=self._tie(),
            output_bias=BIAS in self.tensors and bool(np.any(self.tensors.read(BIAS))),
            attention_bias=True,
            position=self.position(),
            **self.special(size),
        )

    def position(self) -> Position:
        """Returns the position encoding."""
        return Learned()

    def special(self, size) -> dict[str, Any]:
        """Returns options of special tokens, for a vocabulary of this size."""
        return special_ids(self.settings, self.generation_settings, size)

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        width = config.d_model
        for side, depth in depths(config).items():
            yield f"model.{side}.layers.{depth - 1}.fc1.weight", (config.encoder.block.d_ff, width)
            if self.learned:
                yield POSITIONS[side], (config.max_length + FIRST, width)
        table = self.tensors.first_of([SHARED, *TABLES.values(), OUTPUT])
        yield table, (config.tokens.vocab_size, width)
        if BIAS in self.tensors:
            yield BIAS, (1, config.tokens.vocab_size)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        tables = [SHARED, *TABLES.values()]
        yield from self.tables(config, tables, tables)
        for side, ours in SIDES.items() if self.learned else ():
            yield Weight(POSITIONS[side], f"{ours}_embedding.positions", Layout(first=FIRST))
        yield from self.blocks(config)

    def tables(self, config, source, target) -> Iterator[Weight]:
        """Yields the `Weight`s of the tables of tokens, with all of their names, and of the output.

        Args:
            config: The configuration of the model.
            source, target: Names of the table of each side, lists.
        """
        if config.head.tie != "none":
            target = [*target, OUTPUT]
        yield Weight(target if config.head.tie == "all" else source, "source_embedding.table")
        if config.head.tie != "all":
            yield Weight(target, "target_embedding.table")
        if config.head.tie == "none":
            yield Weight(OUTPUT, "output_layer.kernel", TRANSPOSED)
        if config.head.output_bias:
            yield Weight(BIAS, "logits.bias", ROW)

    def blocks(self, config) -> Iterator[Weight]:
        """Yields the `Weight`s of all blocks, and of the normalisations around them."""
        for side, depth in depths(config).items():
            for number in range(depth):
                yield from layers(
                    BLOCKS[side], f"model.{side}.layers.{number}.", f"{side}.blocks.{number}."
                )
            yield from layers(NORMS, f"model.{side}.", f"{side}.")

    def generation(self) -> Generation:  # noqa: D102
        settings, size = self.generation_settings, self.output_size
        ends, languages = ends_of(self.settings, settings, size), self.forces_language
        return read_generation(settings, ends, size, languages=languages)

    @property
    def output_size(self) -> int:
        """Size of the vocabulary of outputs."""
        return self.settings.count("vocab_size")

    @property
    def forces_language(self) -> bool:
        """`True` if every output begins with the token of its language."""
        return False

    def _tie(self):
        """Returns the tying of weights.

        Learned positions of source and target belong to the tables of tokens, so that these cannot
        be one if those differ.
        """
        if not is_tied(self, OUTPUT, [SHARED, *TABLES.values()]):
            return "none"
        if not self.learned:
            return "all"
        names = [name for name in POSITIONS.values() if name in self.tensors]
        shapes = {self.tensors.shapes[name] for name in names}
        apart = len(shapes) == 1 and not np.array_equal(*map(self.tensors.read, names))
        return "target" if apart else "all"


def sizes_and_dropout(settings, longest="max_position_embeddings") -> dict[str, Any]:
    """Returns the options of a `TransformerConfig` that BART's settings name.

    Args:
        settings: The `CheckpointSettings`.
        longest: Setting with the maximum length of outputs.

    Raises:
        ValueError: If a setting is missing or wrong; the error names it.
    """
    return {
        "d_model": settings.count("d_model"),
        "num_layers": settings.count("encoder_layers"),
        "num_decoder_layers": settings.count("decoder_layers"),
        "num_heads": settings.count("encoder_attention_heads"),
        "d_ff": settings.count("encoder_ffn_dim"),
        "max_length": settings.count(longest),
        "dropout": settings.number("dropout", 0.1),
        "attention_dropout": settings.number("attention_dropout", 0.0),
        "activation_dropout": settings.number("activation_dropout", 0.0),
        "activation": settings.choice("activation_function", ACTIVATIONS, "gelu"),
        "embedding_scale": None if settings.flag("scale_embedding") else 1.0,
    }


def depths(config) -> dict[str, int]:
    """Returns the numbers of layers of encoder and decoder, by side."""
    return {"encoder": config.num_layers, "decoder": config.decoder_layers}


def check_sizes(settings) -> None:
    """Refuses an encoder and a decoder whose blocks differ in size.

    Raises:
        ValueError: If they differ; the error names the setting.
    """
    for name in ("attention_heads", "ffn_dim"):
        ours, other = f"encoder_{name}", f"decoder_{name}"
        size = settings.get(ours)
        if settings.get(other, size) != size:
            raise settings.wrong(other, f"`{ours}`, {size}: blocks are of one size")
