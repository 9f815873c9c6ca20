"""WordPiece, BERT's tokenizer, inside the TensorFlow graph."""

import dataclasses
import json

import tensorflow as tf
import tensorflow_text

from keras_transformer.text.bert_normalizer import BertNormalizer
from keras_transformer.text.tokenizers.tokenizer import Tokenizer

FILE = ".wordpiece.json"
CONTINUATION = "##"  # begins a piece that does not begin a word
UNKNOWN_WORD = chr(0x10FFFF)  # stands for a word that is too long; no vocabulary has it
BYTES_PER_CHARACTER = 4  # of UTF-8, at most
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "eos": "[SEP]"}


class WordPieceTokenizer(Tokenizer):
    """A vocabulary of WordPiece as a `Tokenizer`.

    Its ids are those of Hugging Face's `tokenizers`, but for special pieces written out in a
    text: `[SEP]` stays text here.

    Args:
        pieces: The pieces in the order of their ids, strings.
        normalizer: A `BertNormalizer`.
        special: Dictionary of `pad`, `unk`, `bos` and `eos`, names of pieces. A text begins with
            `bos` and ends in `eos`.
        longest_word: Characters of a word; a longer one is unknown.

    Attributes:
        vocab_size: Number of pieces.
        pad_id, unk_id, bos_id, eos_id: Their ids.

    Raises:
        ValueError: If a special piece is missing, or a piece is there twice.

    Reference: Wu et al. (2016), "Google's Neural Machine Translation System", section 4.1; Song et
        al. (2021), "Fast WordPiece Tokenization".
    """

    title = "WordPiece"
    endings = (FILE,)
    starts_with_bos = True

    def __init__(self, pieces, normalizer=None, special=None, longest_word=100, name=None):
        super().__init__(name=name)
        special = special or SPECIAL
        pieces = tuple(pieces)
        ids = {piece: number for number, piece in enumerate(pieces)}
        if len(ids) < len(pieces):
            twice = next(piece for number, piece in enumerate(pieces) if ids[piece] != number)
            raise ValueError(f"`pieces` must each be there once. Received twice: {twice!r}.")
        for role, piece in special.items():
            if piece not in ids:
                raise ValueError(f"`pieces` must have the piece {piece!r}, which is `{role}`.")
            setattr(self, f"{role}_id", ids[piece])
        # In functions: a `tf.Module` would look through them for what it could track.
        self._pieces = lambda: pieces
        self._special = lambda: dict(special)
        self.normalizer = normalizer or BertNormalizer()
        self.longest_word = longest_word
        self.vocab_size = len(pieces)

    @property
    def special(self):
        """Names of the special pieces, a dictionary."""
        return self._special()

    def encode(self, strings):
        """Splits strings into pieces: see `Tokenizer.encode`.

        Each text begins with `bos_id`; the empty string gives `[bos_id, eos_id]`.
        """
        pieces = self.tokenize(strings)  # [B, (S)]
        column = tf.ones([pieces.nrows(), 1], tf.int32)
        begin, end = (
            tf.RaggedTensor.from_tensor(number * column) for number in (self.bos_id, self.eos_id)
        )
        return tf.concat([begin, pieces, end], axis=1)

    def tokenize(self, strings):  # noqa: D102
        return self._tokenize(tf.convert_to_tensor(strings, tf.string))

    # Behind a plain method: a `tf.function` does not keep its object alive.
    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name="strings")], autograph=False
    )
    def _tokenize(self, strings):
        words = tf.strings.split(self.normalizer.map()(strings))  # [B, (W)]
        flat = words.values
        is_long = tf.strings.length(flat, unit="UTF8_CHAR") > self.longest_word
        pieces = self._wordpiece().tokenize(tf.where(is_long, UNKNOWN_WORD, flat))  # [W, (P)]
        return words.with_values(pieces).merge_dims(1, 2)  # [B, (S)]

    def _wordpiece(self):
        """TensorFlow Text's operation, made in every graph that uses it."""
        with tf.device("CPU:0"):  # it has no kernel anywhere else
            return tensorflow_text.FastWordpieceTokenizer(
                vocab=list(self._pieces()),
                suffix_indicator=CONTINUATION,
                max_bytes_per_word=BYTES_PER_CHARACTER * self.longest_word,
                token_out_type=tf.int32,
                unknown_token=self.special["unk"],
                no_pretokenization=True,
            )

    def decode(self, tokens):
        """Joins pieces into strings, with a space between words: see `Tokenizer.decode`."""
        if isinstance(tokens, tf.RaggedTensor):
            tokens = tokens.to_tensor(self.pad_id)
        return self._decode(tf.cast(tokens, tf.int32))

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32, name="tokens")], autograph=False
    )
    def _decode(self, tokens):
        ends = tf.cast(tf.equal(tokens, self.eos_id), tf.int32)
        keep = tf.equal(tf.cumsum(ends, axis=1), 0)  # [B, T], False from the first eos on
        keep &= tf.not_equal(tokens, self.pad_id) & tf.not_equal(tokens, self.bos_id)
        texts = [
            piece.removeprefix(CONTINUATION) if piece.startswith(CONTINUATION) else f" {piece}"
            for piece in self._pieces()
        ]
        texts = tf.where(keep, tf.gather(tf.constant(texts), tokens), "")  # [B, T]
        return tf.strings.regex_replace(tf.strings.reduce_join(texts, axis=1), "^ ", "")

    def pieces(self, tokens):  # noqa: D102
        return [self._pieces()[int(token)] for token in tokens]

    def files(self):  # noqa: D102
        content = {
            "special": self.special,
            "normalizer": dataclasses.asdict(self.normalizer),
            "longest_word": self.longest_word,
            "pieces": self._pieces(),
        }
        return {FILE: json.dumps(content, ensure_ascii=False).encode()}

    @classmethod
    def from_files(cls, files):  # noqa: D102
        try:
            fields = json.loads(files[FILE])
            normalizer = BertNormalizer(**fields["normalizer"])
            return cls(fields["pieces"], normalizer, fields["special"], fields["longest_word"])
        except (TypeError, KeyError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as e:
            raise ValueError(f"the vocabulary of WordPiece is damaged ({e}).") from e
