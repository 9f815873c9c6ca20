"""WordPiece, BERT's tokenizer, inside the TensorFlow graph."""

import dataclasses
import functools
import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_transformer.lazy_tensorflow import graph_method, tensorflow_text, tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.bert_normalizer import SPACE, BertNormalizer
from keras_transformer.text.code_points import decode_with_places
from keras_transformer.text.plain import PlainTokenizer, PlainWordPiece
from keras_transformer.text.ragged_rows import repeated, row_ids, row_sums
from keras_transformer.text.tokenizers.tokenizer import Tokenizer, ids_of, strings_spec

FILE = ".wordpiece.json"
CONTINUATION = "##"  # prefix of a token that continues a word
UNKNOWN_WORD = chr(0x10FFFF)  # replaces a word that is too long; no vocabulary has it
BYTES_PER_CHARACTER = 4  # at most, in UTF-8
UNUSED = re.compile(r"\[unused\d+\]|<unused \d+>")  # entries for tokens that are added later
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "eos": "[SEP]"}


class WordPieceTokenizer(Tokenizer):
    """A `Tokenizer` with a WordPiece vocabulary.

    It returns the same ids as Hugging Face's `tokenizers`, except that the name of a special token
    in a text, such as `[SEP]`, is treated as ordinary text; `encode_masked` recognises masks.

    Args:
        pieces: The tokens in the order of their ids, strings.
        normalizer: A `BertNormalizer`. `None`: one with the default options.
        special: Dictionary from `"pad"`, `"unk"`, `"bos"` and `"eos"` to tokens. A text begins with
            `bos` and ends in `eos`. It may also have `"mask"`. `None`: BERT's tokens.
        longest_word: Maximum length of a word, in characters; longer words are unknown.
        name: Name of the `tf.Module`.

    Attributes:
        vocab_size: Number of tokens.
        pad_id, unk_id, bos_id, eos_id, mask_id: Ids of the special tokens.

    Raises:
        ValueError: If a special token is missing, or a token occurs twice.

    Reference: Wu et al. (2016), "Google's Neural Machine Translation System", section 4.1; Song et
        al. (2021), "Fast WordPiece Tokenization".
    """

    title = "WordPiece"
    endings = (FILE,)
    starts_with_bos = True

    def __init__(
        self,
        pieces: Iterable[str],
        normalizer: BertNormalizer | None = None,
        special: dict[str, str] | None = None,
        longest_word: int = 100,
        name: str | None = None,
    ):
        super().__init__(name)
        special = special or SPECIAL
        pieces = tuple(pieces)
        ids = ids_of(pieces)
        for role, piece in special.items():
            if piece not in ids:
                raise ValueError(f"`pieces` must have the piece {piece!r}, which is `{role}`.")
            setattr(self, f"{role}_id", ids[piece])
        # Wrapped in functions, because a `tf.Module` searches its attributes for variables.
        self._pieces = lambda: pieces
        self._special = lambda: dict(special)
        self.normalizer = normalizer or BertNormalizer()
        self.longest_word = longest_word
        self.vocab_size = len(pieces)

    @property
    def special(self) -> dict[str, str]:
        """Special tokens, a dictionary from their roles."""
        return self._special()

    @functools.cached_property
    def plain(self) -> PlainTokenizer | None:  # noqa: D102
        return PlainWordPiece(self)

    def encode(self, strings: Tensor) -> "tf.RaggedTensor":
        """Encodes strings: see `Tokenizer.encode`.

        Each text begins with `bos_id`; the empty string becomes `[bos_id, eos_id]`.
        """
        pieces = self.tokenize(strings)  # [B, (S)]
        column = tf.ones([pieces.nrows(), 1], tf.int32)
        begin, end = (
            tf.RaggedTensor.from_tensor(number * column) for number in (self.bos_id, self.eos_id)
        )
        return tf.concat([begin, pieces, end], axis=1)

    def tokenize(self, strings: Tensor) -> "tf.RaggedTensor":  # noqa: D102
        return self._tokenize(tf.convert_to_tensor(strings, tf.string))

    @graph_method(strings_spec)
    def _tokenize(self, strings):
        return self._tokenize_words(strings).merge_dims(1, 2)  # [B, (S)]

    def _tokenize_words(self, strings):
        """Returns the tokens of each word, `[B, (W), (P)]`."""
        words = tf.strings.split(self.normalizer.map()(strings))  # [B, (W)]
        flat = words.values
        is_long = tf.strings.length(flat, unit="UTF8_CHAR") > self.longest_word
        pieces = self._wordpiece().tokenize(tf.where(is_long, UNKNOWN_WORD, flat))  # [W, (P)]
        return words.with_values(pieces)

    def tokenize_with_words(
        self, strings: Tensor
    ) -> "tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]":
        """Returns tokens and the offsets of their words: see `Tokenizer.tokenize_with_words`.

        Characters at the end of a word that the normaliser removes, such as accents that are
        characters of their own, do not belong to the word.
        """
        return self._tokenize_with_words(tf.convert_to_tensor(strings, tf.string))

    @graph_method(strings_spec)
    def _tokenize_with_words(self, strings):
        by_word = self._tokenize_words(strings)  # [B, (W), (P)]
        points, begins, ends = decode_with_places(strings)
        mapped, lengths = self.normalizer.map().map(points.values)
        owner = repeated(tf.range(tf.size(lengths)), lengths)  # code point of each new one
        inside = tf.not_equal(mapped, SPACE)
        owner, row = (
            tf.boolean_mask(x, inside) for x in (owner, tf.gather(row_ids(points), owner))
        )
        # Number of spaces before: words are apart if it changes.
        spaces = tf.boolean_mask(tf.cumsum(tf.cast(~inside, tf.int32)), inside)
        same = tf.equal(spaces[1:], spaces[:-1]) & tf.equal(row[1:], row[:-1])
        is_begin = tf.concat([tf.ones_like(inside)[:1], ~same], 0)[: tf.size(owner)]
        word = tf.cumsum(tf.cast(is_begin, tf.int32)) - 1
        count = tf.reduce_sum(tf.cast(is_begin, tf.int32))
        begins = tf.math.unsorted_segment_min(tf.gather(begins, owner), word, count)  # [W of all]
        ends = tf.math.unsorted_segment_max(tf.gather(ends, owner), word, count)
        pieces, repeats = by_word.merge_dims(1, 2), by_word.values.row_lengths()
        return pieces, *(pieces.with_values(repeated(x, repeats)) for x in (begins, ends))

    def _wordpiece(self):
        """Returns TensorFlow Text's tokenizer, created anew in every graph."""
        with tf.device("CPU:0"):  # it has a kernel on the CPU only
            return tensorflow_text.FastWordpieceTokenizer(
                model_buffer=tf.constant(self._automaton), token_out_type=tf.int32
            )

    @functools.cached_property
    def _automaton(self):
        """The automaton of TensorFlow Text's tokenizer, an array of bytes.

        From the vocabulary, it would be a list of a million integers in every graph.
        """
        longest = BYTES_PER_CHARACTER * self.longest_word
        automaton = tensorflow_text.build_fast_wordpiece_model(  # split into words already: True
            list(self._pieces()), longest, CONTINUATION, self.special["unk"], True, False
        )
        return np.frombuffer(automaton, np.uint8)

    def join(self, tokens: Tensor, keep: Tensor) -> Tensor:
        """Joins tokens to strings with spaces between words: see `Tokenizer.join`."""
        texts = [
            piece.removeprefix(CONTINUATION) if piece.startswith(CONTINUATION) else f" {piece}"
            for piece in self._pieces()
        ]
        texts = tf.where(keep, tf.gather(tf.constant(texts), tokens), "")  # [B, T]
        return tf.strings.regex_replace(tf.strings.reduce_join(texts, axis=1), "^ ", "")

    def pieces(self, tokens: Tensor) -> list[str]:  # noqa: D102
        return [self._pieces()[int(token)] for token in tokens]

    def used(self, strings: list[str]) -> set[int]:
        """Returns the ids of the tokens on which encoding depends: see `Tokenizer.used`.

        An unknown word depends on the tokens in front of its unknown part: without them, shorter
        ones might make it known.
        """
        words = tf.strings.split(self.normalizer.map()(tf.constant(strings, tf.string))).values
        pieces = self._wordpiece().tokenize(words)  # [W, (P)]
        unknown = row_sums(tf.cast(tf.equal(pieces, self.unk_id), tf.int32)) > 0  # [W]
        return (
            super()
            .used(strings)
            .union(*map(self._beginning, {*tf.boolean_mask(words, unknown).numpy()}))
        )

    def _beginning(self, word):
        """Returns the ids of the tokens in front of the unknown part of a word, UTF-8 bytes."""
        ids, rest, mark = set(), word.decode(), ""
        if len(rest) > self.longest_word:
            return ids
        while rest:
            sizes = range(len(rest), 0, -1)
            size = next((size for size in sizes if mark + rest[:size] in self._ids), None)
            if size is None:
                break
            ids.add(self._ids[mark + rest[:size]])
            rest, mark = rest[size:], CONTINUATION
        return ids

    @functools.cached_property
    def _ids(self):
        """Ids by token."""
        return {piece: number for number, piece in enumerate(self._pieces())}

    def begins_words(self) -> list[bool]:  # noqa: D102
        return [not piece.startswith(CONTINUATION) for piece in self._pieces()]

    def needed(self, used: set[int]) -> set[int]:  # noqa: D102
        pieces = self._pieces()
        words = tf.strings.split(self.normalizer.map()(tf.constant(pieces))).to_list()
        single = {
            number
            for number, piece in enumerate(pieces)
            if len(piece.removeprefix(CONTINUATION)) == 1
        }
        # Tokens that no text contains are special, except those that the vocabulary reserves.
        special = {
            number
            for number, (piece, parts) in enumerate(zip(pieces, words, strict=True))
            if parts != [piece.encode()] and not piece.startswith(CONTINUATION)
            if not UNUSED.fullmatch(piece)
        }
        named = {self._ids[piece] for piece in self.special.values()}
        return used | single | special | named

    def restricted(self, ids: list[int]) -> "WordPieceTokenizer":  # noqa: D102
        content = json.loads(self.files()[FILE])
        content["pieces"] = [content["pieces"][number] for number in ids]
        return self.from_files({FILE: json.dumps(content).encode()})

    def files(self) -> dict[str, bytes]:  # noqa: D102
        content = {
            "special": self.special,
            "normalizer": dataclasses.asdict(self.normalizer),
            "longest_word": self.longest_word,
            "pieces": self._pieces(),
        }
        return {FILE: json.dumps(content, ensure_ascii=False).encode()}

    def code_points(self) -> dict[str, Any]:
        """Returns the classes of the normaliser: see `BertNormalizer.code_points`."""
        return self.normalizer.code_points()

    @classmethod
    def from_files(cls, files: dict[str, bytes]) -> "WordPieceTokenizer":  # noqa: D102
        try:
            fields = json.loads(files[FILE])
            normalizer = BertNormalizer(**fields["normalizer"])
            return cls(fields["pieces"], normalizer, fields["special"], fields["longest_word"])
        except (TypeError, KeyError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as e:
            raise ValueError(f"the WordPiece vocabulary is damaged ({e}).") from e
