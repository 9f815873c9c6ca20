"""Marian models in Hugging Face's format, such as those of OPUS-MT."""

import json
from collections.abc import Iterator

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.feed_forwards import Plain
from keras_transformer.norms import LayerNorm
from keras_transformer.positions import Learned, Sinusoidal, sinusoids
from keras_transformer.pretrained.encoder_decoder import (
    BIAS,
    EPSILON,
    OUTPUT,
    POSITIONS,
    PROJECTIONS,
    SHARED,
    SIDES,
    TABLES,
    EncoderDecoderFamily,
    check_sizes,
    depths,
    sizes_and_dropout,
)
from keras_transformer.pretrained.generation import special_ids
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import Layout, Weight, is_tied
from keras_transformer.pretrained.piece_vocabulary import read_model
from keras_transformer.pretrained.pieces import read_ids, sentencepiece_tokenizer
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.tokenizers import Tokenizers

# Settings of BART that Hugging Face's Marian classes do not read, with the values for what they
# compute: a norm after each sublayer, no other norms, sinusoids.
NOT_READ = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "layer_norm_eps": EPSILON,
    "do_blenderbot_90_layernorm": False,
}
# Settings that change the order of the sums; no other is known.
EXPRESSIBLE = {"do_blenderbot_90_layernorm": (False,), "is_encoder_decoder": (True,)}
MOST_POSITIONS = 1 << 16  # of a table of sinusoids, which the file need not hold
# Sinusoids are kept in the type of the file; half a unit of bfloat16 between 0.5 and 1 is 0.002.
SINUSOIDS_DIFFER, IN_HALF = 1e-4, {"F16": 1e-3, "BF16": 8e-3}
PIECES, TARGET_PIECES = "vocab.json", "target_vocab.json"
SPM = {side: f"{side}.spm" for side in SIDES.values()}


class OpusMT(EncoderDecoderFamily):
    """A folder with `config.json`, `vocab.json` and SentencePiece models of both sides.

    Also read: `generation_config.json`, and `target_vocab.json` where both sides differ.
    """

    name, model_type, task = "opus-mt", "marian", "translation"
    listing = Listing(
        {"opus-mt": ("OPUS-MT",)},
        "pretrained_translation.md",
        "`vocab.json`, `source.spm`, `target.spm`",
        exports=("ctranslate2",),
    )
    reader = "MarianMTModel"

    def read_settings(self) -> CheckpointSettings:
        """Returns the settings that Hugging Face's classes of `model_type` "marian" read.

        Only where `architectures` names others alone, such as BART's, do BART's settings count.
        """
        settings = super().read_settings()
        named = settings.get("architectures")
        named = named if isinstance(named, list) else []
        if named and not any(str(n).startswith("Marian") for n in named):
            return settings
        self.notes += [
            f"`{name}` = {json.dumps(settings.get(name))} has no effect: Hugging Face's Marian "
            "models do not read it"
            for name, value in NOT_READ.items()
            if settings.get(name, value) != value
        ]
        return CheckpointSettings({**settings.content, **NOT_READ}, settings.path)

    def config(self) -> TransformerConfig:  # noqa: D102
        settings, tensors = self.settings, self.tensors
        self._check_expressible()
        size, target_size = self._vocabularies()
        positions = self._positions()
        # Learned positions of source and target belong to the tables of tokens, so that these
        # cannot be one if those differ.
        apart = positions is not None and not np.array_equal(*positions.values())
        tie = "all" if self._shared and not apart else "target"
        target = [SHARED, *TABLES.values()] if self._shared else [TABLES["decoder"]]
        return TransformerConfig(
            vocab_size=size,
            target_vocab_size=None if self._shared else target_size,
            **sizes_and_dropout(settings),
            norm="pre" if settings.flag("normalize_before") else "post",
            final_norm=settings.flag("add_final_layer_norm"),
            embedding_norm=settings.flag("normalize_embedding"),
            normalization=LayerNorm(settings.number("layer_norm_eps", EPSILON)),
            tie=tie if is_tied(self, OUTPUT, target) else "none",
            output_bias=BIAS in tensors and bool(np.any(tensors.read(BIAS))),
            attention_bias=tensors.has_biases(*(f"{letter}_proj" for letter in PROJECTIONS)),
            feed_forward=Plain(bias=tensors.has_biases("fc1", "fc2")),
            position=Sinusoidal("halves") if positions is None else Learned(),
            **special_ids(settings, self.generation_settings, min(size, target_size)),
        )

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        rows = {"encoder": config.tokens.vocab_size, "decoder": config.output_size}
        width, inner = config.d_model, config.encoder.block.d_ff
        for side, depth in depths(config).items():
            yield f"model.{side}.layers.{depth - 1}.fc1.weight", (inner, width)
            yield self.tensors.first_of([TABLES[side], SHARED]), (rows[side], width)
        if BIAS in self.tensors:
            yield BIAS, (1, config.output_size)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        both = [SHARED, *TABLES.values()]
        source, target = [both, both] if self._shared else [[t] for t in TABLES.values()]
        if not self._shared and SHARED in self.tensors:
            source = [*source, SHARED]
        yield from self.tables(config, source, target)
        if isinstance(config.encoder.position, Learned):
            table = sinusoids(config.max_length, config.d_model, "halves")
            table = np.pad(table, ((self._first, 0), (0, 0)))
            for side, ours in SIDES.items():
                layout = Layout(first=self._first)
                yield Weight(POSITIONS[side], f"{ours}_embedding.positions", layout, table)
        yield from self.blocks(config)

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        folder, sizes = self.folder, (config.tokens.vocab_size, config.output_size)
        ids = read_ids(folder, PIECES, sizes[0])
        separate = folder.file(TARGET_PIECES) is not None
        if separate and self._shared:
            raise ValueError(
                f"{folder.path / TARGET_PIECES} must not exist, because config.json has one "
                "vocabulary for both sides (`share_encoder_decoder_embeddings`)."
            )
        target_ids = ids
        if separate or sizes[0] != sizes[1]:
            target_ids = read_ids(folder, TARGET_PIECES, sizes[1])
        target = SPM["source" if folder.file(SPM["target"]) is None else "target"]
        return Tokenizers.of(
            [
                sentencepiece_tokenizer(read_model(folder, SPM["source"]), ids, config, sizes[0]),
                sentencepiece_tokenizer(read_model(folder, target), target_ids, config, sizes[1]),
            ]
        )

    @property
    def output_size(self) -> int:  # noqa: D102
        return self._vocabularies()[1]

    @property
    def _shared(self):
        """True if source and target have one embedding and one vocabulary."""
        return self.settings.flag("share_encoder_decoder_embeddings", True)

    @property
    def _is_learned(self):
        """True if the settings ask for learned positions."""
        return not self.settings.flag("static_position_embeddings", True)

    @property
    def _first(self):
        """Rows of a learned table of positions before that of the first position."""
        return self.settings.count("extra_pos_embeddings", 0, least=0) if self._is_learned else 0

    def _vocabularies(self):
        """The sizes of the vocabularies of source and target."""
        settings, size = self.settings, self.settings.count("vocab_size")
        if settings.get("decoder_vocab_size") is None:
            return size, size
        target = settings.count("decoder_vocab_size")
        if self._shared and target != size:
            rule = f"`vocab_size`, {size}, which both sides share"
            raise settings.wrong("decoder_vocab_size", rule)
        return size, target

    def _check_expressible(self):
        """Refuses by name what our model does not support."""
        settings = self.settings
        check_sizes(settings)
        settings.check(EXPRESSIBLE)
        name = "max_position_embeddings"
        if not self._is_learned and settings.count(name) > MOST_POSITIONS:
            raise settings.wrong(name, f"at most {MOST_POSITIONS:,} of sinusoids")

    def _positions(self):
        """Learned positions of encoder and decoder, by side; `None` where they are sinusoids."""
        settings, tensors, learned = self.settings, self.tensors, self._is_learned
        length, width = settings.count("max_position_embeddings"), settings.count("d_model")
        rows = "`max_position_embeddings`"
        rows += " and `extra_pos_embeddings` say" if learned else " says"
        shape, tables = (length + self._first, width), {}
        for side, name in POSITIONS.items():
            if name in tensors:
                tables[side] = tensors.read(name, shape, f"{rows} in config.json")[self._first :]
            elif learned:
                raise ValueError(
                    f"{tensors.path}: {name} is missing, although `static_position_embeddings` = "
                    "false in config.json requires learned positions. With true they are "
                    "sinusoids."
                )
        expected = sinusoids(length, width, "halves")
        types = {side: tensors.type_of(POSITIONS[side]) for side in tables}
        far = (
            np.abs(table - expected).max() > IN_HALF.get(types[side], SINUSOIDS_DIFFER)
            for side, table in tables.items()
        )
        return {side: tables.get(side, expected) for side in SIDES} if learned or any(far) else None
