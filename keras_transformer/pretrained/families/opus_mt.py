"""Marian models in Hugging Face's format, such as those of OPUS-MT."""

import functools
import json

import numpy as np

from keras_transformer.checks import is_integer
from keras_transformer.config import TransformerConfig
from keras_transformer.layers.positions import sinusoids
from keras_transformer.models.transformer import Transformer
from keras_transformer.pretrained.family import GENERATION, Family
from keras_transformer.pretrained.generation import read_generation
from keras_transformer.pretrained.names import ROW, TRANSPOSED, Layout, Weight, layer_norm, linear
from keras_transformer.pretrained.settings import ACTIVATIONS, Settings
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.sentencepiece_model import pieces_of, with_unused_pieces
from keras_transformer.text.tokenizers import SentencePieceTokenizer, Tokenizers

EPSILON = 1e-5  # of every layer normalisation: PyTorch's default, which no configuration changes
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
MOST_POSITIONS = 1 << 16  # of a table of sinusoids, which the file need not hold
# Sinusoids are kept in the type of the file; half a unit of bfloat16 between 0.5 and 1 is 0.002.
SINUSOIDS_DIFFER = {"F32": 1e-4, "F16": 1e-3, "BF16": 8e-3}
SIDES = {"encoder": "source", "decoder": "target"}
SHARED, OUTPUT, BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
TABLES = {side: f"model.{side}.embed_tokens.weight" for side in SIDES}
POSITIONS = {side: f"model.{side}.embed_positions.weight" for side in SIDES}
PROJECTIONS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output_projection": "out_proj",
}
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
UNKNOWN, END, PADDING = "<unk>", "</s>", "<pad>"
PIECES, TARGET_PIECES = "vocab.json", "target_vocab.json"
SPM = {side: f"{side}.spm" for side in SIDES.values()}


class OpusMT(Family):
    """A folder with `config.json`, `vocab.json` and SentencePiece models of both sides.

    Also read: `generation_config.json`, and `target_vocab.json` where both sides differ.
    """

    name, model_type, task = "opus-mt", "marian", "translation"
    reader, model_class = "MarianMTModel", Transformer

    def read_settings(self):
        """Returns the settings that Hugging Face's classes of `model_type` "marian" read.

        Only where `architectures` names others alone, such as BART's, do BART's settings count.
        """
        settings = super().read_settings()
        named = settings.get("architectures")
        if (
            isinstance(named, list)
            and named
            and not any(str(n).startswith("Marian") for n in named)
        ):
            return settings
        self.notes += [
            f"`{name}` = {json.dumps(settings.get(name))} has no effect: Hugging Face's Marian "
            "models do not read it"
            for name, value in NOT_READ.items()
            if settings.get(name, value) != value
        ]
        return Settings({**settings.content, **NOT_READ}, settings.path)

    def config(self):  # noqa: D102
        settings, tensors = self.settings, self.tensors
        self._check_expressible()
        size, target_size = self._vocabularies()
        positions = self._positions()
        # Learned positions of source and target belong to the tables of tokens, so that these
        # cannot be one if those differ.
        apart = positions is not None and not np.array_equal(*positions.values())
        tie = "all" if self._shared and not apart else "target"
        has_bias = BIAS in tensors and bool(np.any(tensors.read(BIAS)))
        return TransformerConfig(
            vocab_size=size,
            target_vocab_size=None if self._shared else target_size,
            d_model=settings.count("d_model"),
            num_layers=settings.count("encoder_layers"),
            num_decoder_layers=settings.count("decoder_layers"),
            num_heads=settings.count("encoder_attention_heads"),
            d_ff=settings.count("encoder_ffn_dim"),
            max_length=settings.count("max_position_embeddings"),
            dropout=settings.number("dropout", 0.1),
            attention_dropout=settings.number("attention_dropout", 0.0),
            activation_dropout=settings.number("activation_dropout", 0.0),
            activation=settings.choice("activation_function", ACTIVATIONS, "gelu"),
            norm="pre" if settings.flag("normalize_before") else "post",
            final_norm=settings.flag("add_final_layer_norm"),
            embedding_norm=settings.flag("normalize_embedding"),
            layer_norm_epsilon=settings.number("layer_norm_eps", EPSILON),
            embedding_scale=None if settings.flag("scale_embedding") else 1.0,
            tie=tie if settings.flag("tie_word_embeddings", True) else "none",
            output_bias=has_bias,
            attention_bias=tensors.has_biases(*PROJECTIONS.values()),
            feed_forward_bias=tensors.has_biases("fc1", "fc2"),
            position="sinusoidal" if positions is None else "learned",
            **({"sinusoid_layout": "halves"} if positions is None else {}),
            **self._special_ids(min(size, target_size)),
            **self.generation().ids(),
        )

    def sizes(self, config):  # noqa: D102
        layers = {"encoder": config.num_layers, "decoder": config.decoder_layers}
        rows = {"encoder": config.vocab_size, "decoder": config.output_size}
        for side, table in TABLES.items():
            last = f"model.{side}.layers.{layers[side] - 1}.fc1.weight"
            yield last, (config.d_ff, config.d_model)
            yield self.tensors.first_of([table, SHARED]), (rows[side], config.d_model)
        if BIAS in self.tensors:
            yield BIAS, (1, config.output_size)

    def names(self, config):  # noqa: D102
        source, target = (
            [SHARED, *TABLES.values()] if self._shared else [t] for t in TABLES.values()
        )
        if not self._shared and SHARED in self.tensors:
            source.append(SHARED)
        if config.tie != "none":
            target.append(OUTPUT)
        yield Weight(target if config.tie == "all" else source, "source_embedding.table")
        if config.tie != "all":
            yield Weight(target, "target_embedding.table")
        if config.tie == "none":
            yield Weight(OUTPUT, "output_layer.kernel", TRANSPOSED)
        if config.output_bias:
            yield Weight(BIAS, "logits.bias", ROW)
        if config.position == "learned":
            table = sinusoids(config.max_length, config.d_model, "halves")
            table = np.pad(table, ((self._first, 0), (0, 0)))
            for side, ours in SIDES.items():
                layout = Layout(first=self._first)
                yield Weight(POSITIONS[side], f"{ours}_embedding.positions", layout, table)
        for side, layers in (("encoder", config.num_layers), ("decoder", config.decoder_layers)):
            for number in range(layers):
                yield from _block(
                    config, f"model.{side}.layers.{number}", f"{side}.blocks.{number}"
                )
            if config.has_final_norm:
                yield from layer_norm(f"model.{side}.layer_norm", f"{side}.norm")
            if config.embedding_norm:
                yield from layer_norm(f"model.{side}.layernorm_embedding", f"{side}.embedding_norm")

    def tokenizers(self, config):  # noqa: D102
        ids = self._read_ids(PIECES, config.vocab_size)
        separate = self.folder.file(TARGET_PIECES) is not None
        if separate and self._shared:
            raise ValueError(
                f"{self.folder.path / TARGET_PIECES} must not be there, as config.json has one "
                "vocabulary for both sides (`share_encoder_decoder_embeddings`)."
            )
        target_ids = ids
        if separate or config.output_size != config.vocab_size:
            target_ids = self._read_ids(TARGET_PIECES, config.output_size)
        source = self._tokenizer(SPM["source"], ids, config, config.vocab_size)
        name = SPM["source" if self.folder.file(SPM["target"]) is None else "target"]
        target = self._tokenizer(name, target_ids, config, config.output_size)
        return Tokenizers.of([source, target])

    def generation(self):  # noqa: D102
        return self._generation

    @functools.cached_property
    def _generation(self):
        settings, (_, size) = self._of_generation, self._vocabularies()
        eos_id = settings.token("eos_token_id", size, default=self.settings.get("eos_token_id"))
        return read_generation(settings, eos_id, size)

    @functools.cached_property
    def _of_generation(self):
        """The settings of outputs: those of their own file, or of `config.json`."""
        content = self.folder.json(GENERATION)
        if content is None:
            return self.settings
        return Settings(content, self.folder.path / GENERATION)

    @property
    def _shared(self):
        """Whether source and target have one embedding and one vocabulary."""
        return self.settings.flag("share_encoder_decoder_embeddings", True)

    @property
    def _first(self):
        """Rows of a learned table of positions before that of the first position."""
        static = self.settings.flag("static_position_embeddings", True)
        return 0 if static else self.settings.count("extra_pos_embeddings", 0, least=0)

    def _vocabularies(self):
        """The sizes of the vocabularies of source and target."""
        settings, size = self.settings, self.settings.count("vocab_size")
        if settings.get("decoder_vocab_size") is None:
            return size, size
        target = settings.count("decoder_vocab_size")
        if self._shared and target != size:
            raise settings.wrong(
                "decoder_vocab_size", f"`vocab_size`, {size}, which both sides share"
            )
        return size, target

    def _special_ids(self, size):
        """The ids with a meaning of their own; what outputs need comes from their own file."""
        settings, generation = self.settings, self._of_generation
        pad_id = settings.token("pad_token_id", size)
        start = settings.token("decoder_start_token_id", size, default=pad_id)
        eos_id = settings.token("eos_token_id", size)
        return {
            "pad_id": pad_id,
            "bos_id": generation.token("decoder_start_token_id", size, default=start),
            "eos_id": generation.token("eos_token_id", size, default=eos_id),
        }

    def _check_expressible(self):
        """Refuses by name what our model has no place for."""
        settings = self.settings
        for name in ("attention_heads", "ffn_dim"):
            ours, other = f"encoder_{name}", f"decoder_{name}"
            size = settings.get(ours)
            if settings.get(other, size) != size:
                raise settings.wrong(other, f"`{ours}`, {size}: blocks are of one size")
        for name, only in (("do_blenderbot_90_layernorm", False), ("is_encoder_decoder", True)):
            if settings.flag(name, only) is not only:
                rule = f"{str(only).lower()}: no other order of the sums is known"
                raise settings.wrong(name, rule)
        if settings.flag("static_position_embeddings", True):
            name = "max_position_embeddings"
            if settings.count(name) > MOST_POSITIONS:
                raise settings.wrong(name, f"at most {MOST_POSITIONS:,} of sinusoids")

    def _positions(self):
        """Learned positions of encoder and decoder, by side; `None` where they are sinusoids."""
        length, width = (self.settings.count(n) for n in ("max_position_embeddings", "d_model"))
        learned = not self.settings.flag("static_position_embeddings", True)
        tables = {
            side: self._read_positions(name, (length + self._first, width), learned)
            for side, name in POSITIONS.items()
            if learned or name in self.tensors
        }
        if learned or not tables:
            return tables or None
        expected = sinusoids(length, width, "halves")
        far = max(
            np.abs(table - expected).max() - SINUSOIDS_DIFFER[self.tensors.type_of(POSITIONS[side])]
            for side, table in tables.items()
        )
        return {side: tables.get(side, expected) for side in POSITIONS} if far > 0 else None

    def _read_positions(self, name, shape, learned):
        """The rows of a table of positions from that of the first position on."""
        if name not in self.tensors:
            raise ValueError(
                f"{self.tensors.path}: {name} is missing, which `static_position_embeddings` = "
                "false in config.json asks for: learned positions. With true they are sinusoids."
            )
        rows = "`max_position_embeddings`"
        rows += " and `extra_pos_embeddings` say" if learned else " says"
        return self.tensors.read(name, shape, f"{rows} in config.json")[self._first :]

    def _read_ids(self, name, size):
        """The ids of the pieces, a dictionary from their names."""
        ids, path = self.folder.require_json(name), self.folder.path / name
        numbers = set()
        for piece, number in ids.items():
            if not is_integer(number) or not 0 <= number < size:
                raise ValueError(
                    f"{path}: ids must be whole numbers from 0 to below {size}, the vocabulary of "
                    f"config.json. Received: {piece!r}: {number!r}."
                )
            if number in numbers:
                raise ValueError(
                    f"{path}: every piece must have an id of its own. Received: {piece!r}."
                )
            numbers.add(number)
        if UNKNOWN not in ids:
            raise ValueError(f"{path}: the piece {UNKNOWN!r} is missing.")
        return ids

    def _tokenizer(self, name, ids, config, size):
        path = self.folder.require(name)
        try:
            if ids.get(END) != config.eos_id:
                raise ValueError(
                    f"{END!r} must have the id that config.json has for the end of a text, "
                    f"{config.eos_id}. Received: {ids.get(END)}"
                )
            return SentencePieceTokenizer(*_with_table(path.read_bytes(), ids, config, size))
        except ValueError as error:
            raise ValueError(f"{path}: {str(error).rstrip('.')}.") from error


def _block(config, theirs, ours):
    """The weights of a block of either side."""
    attentions = list(ATTENTIONS.items())[: 1 + ours.startswith("decoder")]
    for attention, name in attentions:
        for projection, letter in PROJECTIONS.items():
            yield from linear(
                f"{theirs}.{name}.{letter}",
                f"{ours}.{attention}.{projection}",
                config.attention_bias,
            )
        yield from layer_norm(f"{theirs}.{name}_layer_norm", f"{ours}.{attention}_norm")
    for name, layer in (("fc1", "inner"), ("fc2", "outer")):
        yield from linear(
            f"{theirs}.{name}", f"{ours}.feed_forward.{layer}", config.feed_forward_bias
        )
    yield from layer_norm(f"{theirs}.final_layer_norm", f"{ours}.feed_forward_norm")


def _with_table(model, ids, config, size):
    """A SentencePiece model with all pieces of a vocabulary, and the table of their ids."""
    pieces = pieces_of(model)
    known, names = set(pieces), {number: piece for piece, number in ids.items()}
    # Pieces of the other side alone, which an output may hold all the same.
    others = [
        piece
        for number, piece in sorted(names.items())
        if piece not in known and number != config.pad_id and not _is_special(piece)
    ]
    pieces += others
    known.update(others)
    table = PieceTable(
        ids=[ids.get(piece, -1) for piece in pieces],
        size=size,
        pad_id=config.pad_id,
        unk_id=ids[UNKNOWN],
        bos_id=config.bos_id,
        eos_id=config.eos_id,
        names={
            number: names.get(number, f"<unused {number}>")
            for number in range(size)
            if names.get(number) not in known
        },
        banned_ids=config.banned_ids,
        silent_ids=config.silent_ids,
        forced_eos_id=config.forced_eos_id,
    )
    return with_unused_pieces(model, others), table


def _is_special(piece):
    """Whether a piece stands for no text, such as a code of a language."""
    code = piece.startswith(">>") and piece.endswith("<<")
    return code or piece in (UNKNOWN, END, PADDING, "<s>")
