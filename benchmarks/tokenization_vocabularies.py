"""Vocabularies for `tokenization.py`: our tokenizer and the `tokenizer.json` of each kind."""

import base64
import collections
import dataclasses
import functools
import io
import json
import math

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from keras_transformer.pretrained.byte_bpe import read_byte_bpe
from keras_transformer.pretrained.files.folder import CheckpointFolder
from keras_transformer.pretrained.sentencepiece_bpe import read_sentencepiece_bpe
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.bert_normalizer import BertNormalizer
from keras_transformer.text.piece_table import with_table
from keras_transformer.text.tokenizers import (
    SentencePieceTokenizer,
    WordPieceTokenizer,
)
from keras_transformer.text.word_patterns import PATTERNS

SPACE = "▁"
# Why ids may differ from those of `tokenizers`, which computes SentencePiece in its own way.
INVALID, TEXT, TIE, UNKNOWN = "invalid UTF-8", "text", "equal scores", "unexplained"
ROUNDING = 1e-5  # relative difference of sums of scores in float32
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")


class Kind:
    """A kind of tokenizer, with methods that all kinds have."""

    def expected(self, tokenizer, texts):
        """Returns the ids by the library that defines the kind, or `None` if that is the peer."""
        return None

    def reason(self, tokenizer, text, ours, theirs, prepared):
        """Returns why the ids of a text differ from the peer's.

        Args:
            tokenizer: Our tokenizer.
            text: The text, bytes.
            ours, theirs: Both lists of ids.
            prepared: The text as the peer's model gets it.
        """
        return UNKNOWN


@dataclasses.dataclass(frozen=True)
class WordPiece(Kind):
    """BERT's tokenizer.

    Args:
        lowercase: Whether letters become lower case and lose their accents.
    """

    lowercase: bool

    def make(self, peer, texts, pieces, path):
        """Returns our tokenizer, after the peer has trained the vocabulary at `path`."""
        order = {"model": "wordpiece", "lowercase": self.lowercase}
        peer.ask("train", texts=str(texts), pieces=pieces, path=str(path), **order)
        ids = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
        return WordPieceTokenizer(
            sorted(ids, key=ids.get), BertNormalizer(lowercase=self.lowercase)
        )


@dataclasses.dataclass(frozen=True)
class ByteBPE(Kind):
    """Byte-level BPE: GPT-2's tokenizer and its successors.

    Args:
        pattern: Name of the pattern that splits texts into words, one of `PATTERNS`.
        composed: Whether texts are converted to Unicode's composed normal form first.
        whole_words: Whether a word that is a token is never split. The vocabulary then has tokens
            that no merges make.
    """

    pattern: str = "gpt2"
    composed: bool = False
    whole_words: bool = False

    def make(self, peer, texts, pieces, path):
        """Returns our tokenizer of the `tokenizer.json` that the peer has trained."""
        order = {"model": "byte-bpe", "texts": str(texts), "pieces": pieces, "path": str(path)}
        peer.ask("train", **order, steps=self._steps())
        if self.whole_words:
            content = json.loads(path.read_text(encoding="utf-8"))
            content["model"]["merges"] = _with_gaps(content["model"]["merges"])
            path.write_text(json.dumps(content), encoding="utf-8")
        folder = path.with_suffix("")
        folder.mkdir()
        (folder / "tokenizer.json").write_bytes(path.read_bytes())
        size = len(json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"])
        return read_byte_bpe(
            CheckpointFolder(folder),
            CheckpointSettings({"vocab_size": size}, folder),
            dict(zip(("bos", "pad", "eos", "unk"), FAIRSEQ, strict=True)),
            starts_with_bos=False,
        )

    def _steps(self):
        """Returns the fields of the `tokenizer.json` that prepare texts and choose tokens."""
        by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
        if self.pattern == "gpt2":
            split = by_bytes
        else:
            first = {"type": "Split", "pattern": {"Regex": PATTERNS[self.pattern].regex},
                     "behavior": "Isolated", "invert": False}  # fmt: skip
            last = {**by_bytes, "use_regex": False}
            if self.pattern == "gpt2_digits":
                first, last = {"type": "Digits", "individual_digits": True}, by_bytes
            split = {"type": "Sequence", "pretokenizers": [first, last]}
        return {
            "normalizer": {"type": "NFC"} if self.composed else None,
            "pre_tokenizer": split,
            "model": {"type": "BPE", "vocab": {}, "merges": [],
                      "ignore_merges": self.whole_words},
        }  # fmt: skip


@dataclasses.dataclass(frozen=True)
class SentencePiece(Kind):
    """A SentencePiece vocabulary with the ids of a family.

    Args:
        model: `"unigram"` or `"bpe"`.
        order: `"fairseq"`, with its four special tokens in front and ids that are moved by one, as
            XLM-RoBERTa's and mBART's, or `"t5"`, with padding, end and unknown in front.
        rules: Rules of normalisation, as SentencePiece calls them.
    """

    model: str
    order: str
    rules: str

    def make(self, peer, texts, pieces, path):
        """Returns our tokenizer, after training it and writing the `tokenizer.json`."""
        content = self._train(json.loads(texts.read_text(encoding="utf-8")), pieces)
        proto = sentencepiece_model_pb2.ModelProto.FromString(content)
        names = [(piece.piece, piece.score) for piece in proto.pieces]
        if self.order == "fairseq":
            names = [*((name, 0.0) for name in FAIRSEQ), *names[3:]]
        path.write_text(json.dumps(self._json(names, proto)), encoding="utf-8")
        ids = {name: number for number, (name, _) in enumerate(names)}
        special = {role: ids[name] for role, name in
                   {"pad_id": "<pad>", "unk_id": "<unk>", "eos_id": "</s>"}.items()}  # fmt: skip
        return SentencePieceTokenizer(
            *with_table(content, ids, len(ids), bos_id=special["pad_id"], **special)
        )

    def expected(self, tokenizer, texts):
        """Returns the ids by the package `sentencepiece`, a list of lists."""
        processor = _processor(tokenizer.model)
        ids = tokenizer.table.ids
        return [[ids[place] for place in row] for row in processor.encode(texts)]

    def reason(self, tokenizer, text, ours, theirs, prepared):
        """Returns why ids differ: see `Kind`."""
        if text != text.decode("utf-8", "replace").encode():
            return INVALID
        processor = _processor(tokenizer.model)
        if processor.normalize(text.decode()) != prepared:
            return TEXT
        places = tokenizer.table.places
        one, other = (
            math.fsum(processor.get_score(places[number]) for number in ids)
            for ids in (ours, theirs)
        )
        unknown = tokenizer.unk_id
        alike = ours.count(unknown) == theirs.count(unknown)
        same = self.model == "unigram" and math.isclose(one, other, rel_tol=ROUNDING)
        return TIE if same and alike else UNKNOWN

    def _train(self, texts, pieces):
        written = io.BytesIO()
        special = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_lines(texts, pieces // 3), model_writer=written,
            model_type=self.model, vocab_size=pieces, character_coverage=1.0,
            normalization_rule_name=self.rules, num_threads=1, hard_vocab_limit=False,
            minloglevel=2,
            **(special if self.order == "t5" else {}), **self._options(),
        )  # fmt: skip
        return written.getvalue()

    def _options(self):
        """Returns further options of the training."""
        return {}

    def _json(self, names, proto):
        charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
        space = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always"}
        ids = {name: number for number, (name, _) in enumerate(names)}
        if self.model == "unigram":
            model = {"type": "Unigram", "unk_id": ids["<unk>"], "vocab": names,
                     "byte_fallback": False}  # fmt: skip
        else:
            model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "vocab": ids,
                     "merges": _merges(dict(names))}  # fmt: skip
        steps = [{"type": "WhitespaceSplit"}, space]
        return {
            "added_tokens": [],
            "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
            "model": model,
        }


@dataclasses.dataclass(frozen=True)
class ByteFallback(SentencePiece):
    """Llama 2's tokenizer: unknown characters become tokens of bytes, and nothing is normalised."""

    model: str = "bpe"
    order: str = "sentencepiece"
    rules: str = "identity"

    def make(self, peer, texts, pieces, path):
        """Returns our tokenizer of the `tokenizer.json` that is written after training."""
        content = self._train(json.loads(texts.read_text(encoding="utf-8")), pieces)
        proto = sentencepiece_model_pb2.ModelProto.FromString(content)
        names = [(piece.piece, piece.score) for piece in proto.pieces]
        folder = path.with_suffix("")
        folder.mkdir()
        (folder / "tokenizer.model").write_bytes(content)
        for place in (folder / "tokenizer.json", path):
            place.write_text(json.dumps(self._json(names, proto)), encoding="utf-8")
        tokenizer = read_sentencepiece_bpe(
            CheckpointFolder(folder),
            CheckpointSettings({"vocab_size": len(names)}, folder),
            special=lambda pieces: {"bos": "<s>", "eos": "</s>"},
            padding=lambda pieces, unknown: "<pad>",
            marks=lambda roles: [(None, None)],
        )
        self.trained[tokenizer.model] = content
        return tokenizer

    def expected(self, tokenizer, texts):
        """Returns the ids by the package `sentencepiece` and the model that it has trained."""
        return _processor(self.trained[tokenizer.model]).encode(texts)

    def reason(self, tokenizer, text, ours, theirs, prepared):
        """Returns why ids differ: see `Kind`."""
        return INVALID if text != text.decode("utf-8", "replace").encode() else UNKNOWN

    @functools.cached_property
    def trained(self):
        """The models of `sentencepiece`, by the model of our tokenizer."""
        return {}

    def _options(self):
        return {"byte_fallback": True, "remove_extra_whitespaces": False,
                "allow_whitespace_only_pieces": True, "split_digits": True}  # fmt: skip

    def _json(self, names, proto):
        ids = {name: number for number, (name, _) in enumerate(names)}
        steps = [{"type": "Prepend", "prepend": SPACE},
                 {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]  # fmt: skip
        return {
            "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": steps},
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True,
                      "byte_fallback": True, "vocab": ids, "merges": _merges(dict(names))},
        }  # fmt: skip


def _with_gaps(merges):
    """Returns merges without every second one whose token is in no other merge.

    Such a token is then only found as a whole word.
    """
    parts = {part for pair in merges for part in pair}
    return [pair for number, pair in enumerate(merges) if number % 2 or "".join(pair) in parts]


@functools.lru_cache(2)
def _processor(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def _lines(texts, count):
    """Yields the lines of texts with spaces instead of all but the most frequent characters."""
    frequent = collections.Counter(letter for text in texts for letter in text).most_common(count)
    known = {letter for letter, _ in frequent} - {"\0"}
    for text in texts:
        for line in text.split("\n"):
            line = "".join(letter if letter in known else " " for letter in line)
            if line.strip():
                yield line


def _merges(scores):
    """All pairs of pieces whose text is a piece, in the order of SentencePiece's merges."""
    pairs = []
    for piece, score in scores.items():
        for place in range(1, len(piece)):
            one, other = piece[:place], piece[place:]
            if one in scores and other in scores:
                pairs.append((-score, len(pairs), one, other))
    return [[one, other] for _, _, one, other in sorted(pairs)]


KINDS = {
    "wordpiece-cased": WordPiece(lowercase=False),
    "wordpiece-uncased": WordPiece(lowercase=True),
    "byte-bpe": ByteBPE(),
    "byte-bpe-llama3": ByteBPE("llama3", whole_words=True),
    "byte-bpe-qwen2": ByteBPE("qwen2", composed=True),
    "byte-bpe-smollm": ByteBPE("gpt2_digits"),
    "unigram-xlm-r": SentencePiece("unigram", "fairseq", "nmt_nfkc"),
    "unigram-t5": SentencePiece("unigram", "t5", "nmt_nfkc"),
    "unigram-mbart": SentencePiece("unigram", "fairseq", "nmt_nfkc_cf"),
    "sentencepiece-bpe": SentencePiece("bpe", "fairseq", "nmt_nfkc"),
    "bpe-llama2": ByteFallback(),
}
