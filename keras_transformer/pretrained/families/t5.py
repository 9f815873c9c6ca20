"""T5, FLAN-T5, mT5 and MADLAD-400 in Hugging Face's format: texts to texts, with Unigram."""

import functools
import re
from collections.abc import Iterator

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.generation import Generation
from keras_transformer.feed_forwards import Gated, Plain
from keras_transformer.models.transformer import Transformer
from keras_transformer.norms import RMSNorm
from keras_transformer.positions import T5Bias
from keras_transformer.pretrained.encoder_decoder import depths
from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.generation import ends_of, read_generation, special_ids
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.multilingual import with_added_languages, written_languages
from keras_transformer.pretrained.names import TRANSPOSED, Weight, is_tied
from keras_transformer.pretrained.piece_vocabulary import check_ids_agree, read_pieces
from keras_transformer.pretrained.pieces import check_ids, sentencepiece_tokenizer
from keras_transformer.pretrained.settings import ACTIVATIONS
from keras_transformer.text.tokenizers import Tokenizers

SPM = "spiece.model"
CODE = re.compile("<2([A-Za-z0-9_-]+)>")  # of MADLAD-400
SENTINELS = 100  # tokens after the pieces of T5's SentencePiece model, numbered downwards
GATED = "gated-"
SHARED, OUTPUT = "shared.weight", "lm_head.weight"
TABLES = {side: f"{side}.embed_tokens.weight" for side in ("encoder", "decoder")}
PROJECTIONS = {"q": "query", "k": "key", "v": "value", "o": "output_projection"}
ATTENTIONS = {"self_attention": "SelfAttention", "cross_attention": "EncDecAttention"}
SUBLAYERS = {
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}


class T5(Family):
    """A folder with `config.json`, and `spiece.model` or `tokenizer.json`.

    A prefix that names the task, such as `translate English to German: `, is part of the text. In
    MADLAD-400, each text begins with the code of the language into which it is translated, such as
    `<2de>`, which is a piece of its vocabulary.
    """

    name, model_type, task = "t5", "t5", "translation"
    listing = Listing(
        {"t5": ("T5", "FLAN-T5"), "madlad-400": ("MADLAD-400",)},
        "pretrained_translation.md",
        "`spiece.model` or `tokenizer.json`",
        exports=("ctranslate2",),
    )
    reader, model_class = "T5ForConditionalGeneration", Transformer
    ignored = (r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",)

    def config(self) -> TransformerConfig:  # noqa: D102
        settings, size = self.settings, self.settings.count("vocab_size")
        settings.check({"is_encoder_decoder": (True,)})
        layers, width = settings.count("num_layers"), settings.count("d_kv")
        return TransformerConfig(
            vocab_size=size,
            d_model=settings.count("d_model"),
            num_layers=layers,
            num_decoder_layers=settings.count("num_decoder_layers", layers),
            num_heads=settings.count("num_heads"),
            d_ff=settings.count("d_ff"),
            d_k=width,
            d_v=width,
            max_length=settings.count("n_positions", 512),
            dropout=settings.number("dropout_rate", 0.1),
            embedding_scale=1.0,
            tie="all" if self._is_tied else "none",
            **self._feed_forward(),
            norm="pre",
            normalization=RMSNorm(settings.number("layer_norm_epsilon", 1e-6)),
            score="dot_product",
            position=T5Bias(
                distance=settings.count("relative_attention_max_distance", 128),
                buckets=settings.count("relative_attention_num_buckets", 32),
                shared=True,
            ),
            **special_ids(settings, self.generation_settings, size),
        )

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        heads, width = config.encoder.block.mixer, config.d_model
        table = self.tensors.first_of([SHARED, *TABLES.values()])
        yield table, (config.tokens.vocab_size, width)
        for side, depth in depths(config).items():
            bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
            yield bias, (config.encoder.position.buckets, heads.num_heads)
            last = f"{side}.block.{depth - 1}.layer"
            yield f"{last}.0.SelfAttention.q.weight", (heads.num_heads * heads.d_k, width)
            wo = f"{last}.{len(SUBLAYERS[side]) - 1}.DenseReluDense.wo.weight"
            yield wo, (width, config.encoder.block.d_ff)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        tables = [SHARED, *TABLES.values()]
        if config.head.tie == "none":
            yield Weight(tables, "source_embedding.table")
            yield Weight(tables, "target_embedding.table")
            yield Weight(OUTPUT, "output_layer.kernel", TRANSPOSED)
        else:
            yield Weight([*tables, OUTPUT], "source_embedding.table")
        for side, depth in depths(config).items():
            first = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
            yield Weight(first, f"{side}.blocks.0.self_attention.distance_bias")
            for number in range(depth):
                for place, sublayer in enumerate(SUBLAYERS[side]):
                    theirs = f"{side}.block.{number}.layer.{place}"
                    ours = f"{side}.blocks.{number}.{sublayer}"
                    yield Weight(f"{theirs}.layer_norm.weight", f"{ours}_norm.scale")
                    yield from self._sublayer(sublayer, theirs, ours)
            # The factor of the output belongs to the last normalisation.
            factor = config.d_model**-0.5 if side == "decoder" and self._is_scaled else 1.0
            change = functools.partial(np.multiply, np.float32(factor))
            norm = f"{side}.final_layer_norm.weight"
            yield Weight(norm, f"{side}.norm.scale", change=change)

    def _sublayer(self, sublayer, theirs, ours):
        """Yields the `Weight`s of an attention or a feed-forward network."""
        if sublayer in ATTENTIONS:
            table = {f"{ATTENTIONS[sublayer]}.{a}": b for a, b in PROJECTIONS.items()}
        elif self._is_gated:
            table = {"DenseReluDense.wi_0": "gate", "DenseReluDense.wi_1": "inner"}
        else:
            table = {"DenseReluDense.wi": "inner"}
        if sublayer not in ATTENTIONS:
            table["DenseReluDense.wo"] = "outer"
        for name, layer in table.items():
            yield Weight(f"{theirs}.{name}.weight", f"{ours}.{layer}.kernel", TRANSPOSED)

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        vocabulary = read_pieces(self.folder, SPM)
        vocabulary.check_end()
        ids, pieces = vocabulary.ids, vocabulary.pieces
        if ids is None:
            if len(pieces) > config.tokens.vocab_size:
                rule = f"at least {len(pieces)}, the pieces of {SPM}"
                raise self.settings.wrong("vocab_size", rule)
            ids = {piece: number for number, piece in enumerate(pieces)}
            check_ids_agree(vocabulary, ids)
            if len(pieces) + SENTINELS <= config.tokens.vocab_size:
                last = len(pieces) + SENTINELS - 1
                ids |= {f"<extra_id_{number}>": last - number for number in range(SENTINELS)}
        ids = with_added_languages(ids, self.folder, vocabulary, CODE)
        check_ids(ids, config.tokens.vocab_size, vocabulary.path)
        no_text = {*ids} - {*pieces}
        no_text |= {piece for piece in ids if piece.startswith("<extra_id_")}
        files = vocabulary, ids, config, config.tokens.vocab_size
        tokenizer = sentencepiece_tokenizer(*files, no_text=no_text)
        languages = written_languages(tokenizer, vocabulary, "<2{}>", CODE)
        if languages is None:
            return Tokenizers.of(tokenizer)
        source = sentencepiece_tokenizer(*files, no_text=no_text, languages=languages)
        return Tokenizers.of([source, tokenizer])

    def generation(self) -> Generation:  # noqa: D102
        settings, size = self.generation_settings, self.settings.count("vocab_size")
        return read_generation(settings, ends_of(self.settings, settings, size), size)

    @property
    def _kind(self):
        """Name of the feed-forward network, such as `gated-gelu`."""
        kind = self.settings.get("feed_forward_proj", "relu")
        if not isinstance(kind, str) or kind.removeprefix(GATED) not in ACTIVATIONS:
            rule = f"one of {', '.join(ACTIVATIONS)}, also after {GATED!r}"
            raise self.settings.wrong("feed_forward_proj", rule)
        return kind

    @property
    def _is_gated(self):
        return self._kind.startswith(GATED)

    def _feed_forward(self):
        """Returns the options of the feed-forward network."""
        # Only this name means GELU's approximation, which others call "gelu_new".
        name = "gelu_new" if self._kind == "gated-gelu" else self._kind.removeprefix(GATED)
        network = Gated if self._is_gated else Plain
        return {"activation": ACTIVATIONS[name], "feed_forward": network(bias=False)}

    @property
    def _is_scaled(self):
        """True if the output is scaled, as in the first T5, whose weights are tied."""
        tied = self.settings.flag("tie_word_embeddings", True)
        return self.settings.flag("scale_decoder_outputs", tied)

    @functools.cached_property
    def _is_tied(self):
        """True if the output weights are those of the embedding."""
        return is_tied(self, OUTPUT, [SHARED, *TABLES.values()])


class MT5(T5):
    """mT5, T5 for many languages."""

    name, model_type, reader = "mt5", "mt5", "MT5ForConditionalGeneration"
    listing = Listing(
        {"t5": ("mT5",)},
        "pretrained_translation.md",
        "`spiece.model` or `tokenizer.json`",
        exports=("ctranslate2",),
    )
    _is_scaled = False  # whatever its settings are
