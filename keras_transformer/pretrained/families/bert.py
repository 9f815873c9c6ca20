"""BERT in Hugging Face's format: an encoder, with a head for labels of texts if it has one."""

import functools

from keras_transformer.checks import is_integer
from keras_transformer.config import ClassifierConfig
from keras_transformer.models.classifier import TextClassifier
from keras_transformer.pretrained.family import CONFIG, Family
from keras_transformer.pretrained.names import Weight, layer_norm, linear
from keras_transformer.pretrained.settings import ACTIVATIONS, Settings
from keras_transformer.text.bert_normalizer import BertNormalizer
from keras_transformer.text.tokenizers import Tokenizers, WordPieceTokenizer

CLASSIFIER = "BertForSequenceClassification"
# Models whose heads have no place here; their encoders are read.
OTHERS = ("BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForNextSentencePrediction")
# Settings that change what a model computes, with the values that a `TextClassifier` has. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "problem_type": (None, "single_label_classification"),
    "type_vocab_size": (2,),
}
VOCABULARY, LINES, OPTIONS = "tokenizer.json", "vocab.txt", "tokenizer_config.json"
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "eos": "[SEP]"}
KEYS = {"pad": "pad_token", "unk": "unk_token", "bos": "cls_token", "eos": "sep_token"}
LARGEST = 64 * 2**20  # bytes of a vocabulary


class Bert(Family):
    """A folder with `config.json` and the vocabulary: `tokenizer.json`, or `vocab.txt`.

    A text is `[CLS] text [SEP]`, and a pair of texts `[CLS] one [SEP] other [SEP]`.
    """

    name, model_type, task = "bert", "bert", "classification"
    reader, model_class = "AutoModelForSequenceClassification", TextClassifier
    ignored = (r"cls\..*", r"(bert\.)?embeddings\.(position_ids|token_type_ids)")

    def config(self):  # noqa: D102
        settings, tokenizer = self.settings, self._tokenizer
        for name, values in EXPRESSIBLE.items():
            if settings.get(name, values[0]) not in values:
                raise settings.wrong(name, " or ".join(map(repr, values)))
        return ClassifierConfig(
            vocab_size=tokenizer.vocab_size,
            pad_id=tokenizer.pad_id,
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            segments="after_eos",
            embedding_scale=1.0,
            num_layers=settings.count("num_hidden_layers"),
            d_model=settings.count("hidden_size"),
            num_heads=settings.count("num_attention_heads"),
            d_ff=settings.count("intermediate_size"),
            max_length=settings.count("max_position_embeddings"),
            dropout=settings.number("hidden_dropout_prob", 0.1),
            attention_dropout=settings.number("attention_probs_dropout_prob", 0.1),
            activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
            layer_norm_epsilon=settings.number("layer_norm_eps", 1e-12),
            position="learned",
            norm="post",
            embedding_norm=True,
            attention_bias=True,
            pooling="first",
            pooler=True,
            labels=self._labels(),
        )

    def sizes(self, config):  # noqa: D102
        base, width = self._base, config.d_model
        last = f"{base}encoder.layer.{config.num_layers - 1}.intermediate.dense.weight"
        yield last, (config.d_ff, width)
        yield f"{base}embeddings.word_embeddings.weight", (config.vocab_size, width)
        yield f"{base}embeddings.position_embeddings.weight", (config.max_length, width)

    def names(self, config):  # noqa: D102
        embeddings, pooler = f"{self._base}embeddings", f"{self._base}pooler.dense"
        yield Weight(f"{embeddings}.word_embeddings.weight", "embedding.table")
        yield Weight(f"{embeddings}.position_embeddings.weight", "embedding.positions")
        yield Weight(f"{embeddings}.token_type_embeddings.weight", "segments.table")
        yield from _norm(f"{embeddings}.LayerNorm", "encoder.embedding_norm")
        for number in range(config.num_layers):
            yield from _block(f"{self._base}encoder.layer.{number}", f"encoder.blocks.{number}")
        if f"{pooler}.weight" in self.tensors:
            yield from linear(pooler, "pooler")
        if self._has_labels:
            yield from linear("classifier", "output_layer")

    def tokenizers(self, config):  # noqa: D102
        return Tokenizers.of(self._tokenizer)

    @functools.cached_property
    def _base(self):
        """Begins the names of the encoder's tensors; of a `BertModel` alone it is empty."""
        return "bert." if any(name.startswith("bert.") for name in self.tensors.shapes) else ""

    @functools.cached_property
    def _has_labels(self):
        named = self.settings.get("architectures") or ["BertModel"]
        if named == [CLASSIFIER]:
            return True
        if not isinstance(named, list) or len(named) != 1 or named[0] not in OTHERS:
            raise self.settings.wrong("architectures", f"one of {CLASSIFIER}, {', '.join(OTHERS)}")
        return False

    def _labels(self):
        """The names of the labels, in the order of the logits."""
        settings = self.settings
        if not self._has_labels:
            self.notes.append(
                "the checkpoint has no head for labels of texts, so that of the run is untrained: "
                'train a new one with `start_from` and `parts = ["input", "encoder"]`'
            )
            return ("0", "1")
        names = settings.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
        right = isinstance(names, dict) and {*names} == {str(n) for n in range(len(names))}
        labels = tuple(names[str(number)] for number in range(len(names))) if right else ()
        if len(set(labels)) < max(2, len(labels)) or not all(isinstance(x, str) for x in labels):
            raise settings.wrong("id2label", "names of two labels or more, numbered from 0")
        return labels

    @functools.cached_property
    def _tokenizer(self):
        """The `WordPieceTokenizer`, with as many entries as the model has."""
        size = self.settings.count("vocab_size")
        options = self.folder.json(OPTIONS) or {}
        content = self.folder.json(VOCABULARY)
        path = self.folder.path / (LINES if content is None else VOCABULARY)
        ids, normalizer, longest = (
            self._from_lines(options) if content is None else _from_json(content, path)
        )
        for piece, number in ids.items():
            if not is_integer(number) or not 0 <= number < size:
                raise ValueError(
                    f"{path}: ids must be whole numbers from 0 to below {size}, the `vocab_size` "
                    f"of {CONFIG}. Received: {piece!r}: {number!r}."
                )
        names = {number: piece for piece, number in ids.items()}
        pieces = [names.get(number, f"<unused {number}>") for number in range(size)]
        special = {role: _name(options.get(KEYS[role]), name) for role, name in SPECIAL.items()}
        try:
            tokenizer = WordPieceTokenizer(pieces, normalizer, special, longest)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        if self.settings.token("pad_token_id", size, default=0) != tokenizer.pad_id:
            rule = f"{tokenizer.pad_id}, the id of {special['pad']} in {path.name}"
            raise self.settings.wrong("pad_token_id", rule)
        return tokenizer

    def _from_lines(self, options):
        """The ids of `vocab.txt`, of each line its number, and the options of the tokenizer."""
        path = self.folder.require(LINES)
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path} must be smaller than 64 MiB.")
        try:
            lines = path.read_text("utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be UTF-8: {error}.") from error
        ids = {line.rstrip("\r"): number for number, line in enumerate(lines) if line.strip()}
        settings = Settings(options, self.folder.path / OPTIONS)
        normalizer = BertNormalizer(
            handle_chinese_chars=settings.flag("tokenize_chinese_chars", True),
            strip_accents=_optional_flag(settings, "strip_accents"),
            lowercase=settings.flag("do_lower_case", True),
        )
        return ids, normalizer, 100


def _from_json(content, path):
    """The ids of a `tokenizer.json`, and the options of the tokenizer."""
    parts = {}
    for part, kind in (
        ("model", "WordPiece"),
        ("normalizer", "BertNormalizer"),
        ("pre_tokenizer", "BertPreTokenizer"),
    ):
        value = content.get(part)
        if not isinstance(value, dict) or value.get("type", kind) != kind:
            raise Settings(content, path).wrong(part, f"of the type {kind}")
        parts[part] = Settings(value, path)
    model, normalizer = parts["model"], parts["normalizer"]
    if model.get("continuing_subword_prefix", "##") != "##":
        raise model.wrong("continuing_subword_prefix", "'##'")
    ids = model.get("vocab")
    if not isinstance(ids, dict):
        raise model.wrong("vocab", "ids by piece")
    ids = {**ids, **_added(content.get("added_tokens"), path)}
    options = BertNormalizer(
        normalizer.flag("clean_text", True),
        normalizer.flag("handle_chinese_chars", True),
        _optional_flag(normalizer, "strip_accents"),
        normalizer.flag("lowercase", True),
    )
    return ids, options, model.count("max_input_chars_per_word", 100)


def _added(tokens, path):
    """The ids of pieces that are listed beside a vocabulary."""
    try:
        return {token["content"]: token["id"] for token in tokens or []}
    except (TypeError, KeyError) as error:
        raise ValueError(f"{path}: `added_tokens` must have a `content` and an `id`.") from error


def _optional_flag(settings, name):
    return None if settings.get(name) is None else settings.flag(name)


def _name(value, default):
    """The name of a special piece, which stands for itself or in a dictionary."""
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else default


def _block(theirs, ours):
    """The weights of a block."""
    attention = f"{theirs}.attention"
    for projection in ("query", "key", "value"):
        yield from linear(f"{attention}.self.{projection}", f"{ours}.self_attention.{projection}")
    yield from linear(f"{attention}.output.dense", f"{ours}.self_attention.output_projection")
    yield from _norm(f"{attention}.output.LayerNorm", f"{ours}.self_attention_norm")
    yield from linear(f"{theirs}.intermediate.dense", f"{ours}.feed_forward.inner")
    yield from linear(f"{theirs}.output.dense", f"{ours}.feed_forward.outer")
    yield from _norm(f"{theirs}.output.LayerNorm", f"{ours}.feed_forward_norm")


def _norm(theirs, ours):
    """The weights of a layer normalisation, which old files name as TensorFlow does."""
    for weight, old in zip(layer_norm(theirs, ours), ("gamma", "beta"), strict=True):
        yield weight._replace(theirs=(weight.theirs, f"{theirs}.{old}"))
