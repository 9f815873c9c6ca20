"""`Tokenizer`, the interface that converts strings to token ids and back, in the graph."""

import functools
import hashlib
from typing import Any

import numpy as np

from keras_transformer.lazy_tensorflow import graph_method, tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.languages import Languages
from keras_transformer.text.plain import PlainTokenizer
from keras_transformer.text.white_space import SPACE

BYTES_PER_TOKEN = 64  # SentencePiece's tokens have up to 16 characters of up to 4 bytes


# Signatures of private functions. The public methods are not a `tf.function`, which does not keep
# its object alive: `SentencePieceTokenizer.load(path).encode(...)` would fail.
def strings_spec() -> "list[tf.TensorSpec]":
    """Returns the signature of a method of strings `[B]`."""
    return [tf.TensorSpec([None], tf.string, name="strings")]


def tokens_spec() -> "list[tf.TensorSpec]":
    """Returns the signature of a method of token ids `[B, T]`."""
    return [tf.TensorSpec([None, None], tf.int32, name="tokens")]


class Tokenizer:
    """A vocabulary with its tokenizer, for use in `tf.data`, in a SavedModel, or eagerly.

    A `tf.Module` with a `Tokenizer` as an attribute saves the vocabulary together with its graph.

    Attributes:
        title: Name of the method, for messages and documents.
        endings: Endings of the names of its files. The first file always exists, and its ending
            identifies the kind of tokenizer.
        vocab_size: Number of tokens, including special ones.
        pad_id, unk_id, bos_id, eos_id: Ids of padding, of an unknown token, and of the tokens that
            begin and end a text.
        starts_with_bos: Whether an encoded text begins with `bos_id`.
        mask_id: Id of the token that hides a token of a text, or `None` without such a token.
        mask_strips: Whether `encode_masked` removes white space before a mask.
    """

    title: str = ""
    endings: tuple[str, ...] = ()
    vocab_size: int
    pad_id: int
    unk_id: int
    bos_id: int
    eos_id: int
    starts_with_bos: bool = False
    mask_id: int | None = None
    mask_strips: bool = False

    def __init__(self, name: str | None = None):
        self.name = name

    @property
    def mask(self) -> str | None:
        """The mask token as it is written in a text, such as `"[MASK]"`, or `None`."""
        return None if self.mask_id is None else self.pieces([self.mask_id])[0]

    @property
    def config_fields(self) -> dict[str, int]:
        """The fields of a model's configuration that a vocabulary determines, by name."""
        return {name: getattr(self, name) for name in ("vocab_size", "pad_id", "bos_id", "eos_id")}

    @property
    def bytes_per_token(self) -> int:
        """Maximum number of bytes of a text that become one token.

        Runs of spaces, unknown characters and words that are too long may have more.
        """
        return BYTES_PER_TOKEN

    @property
    def languages(self) -> Languages | None:
        """The `Languages` whose tokens are in front of an encoded text, or `None`."""
        return None

    def with_languages(self, source: str | None = None, target: str | None = None) -> "Tokenizer":
        """Returns a tokenizer with other default languages; `None` keeps one.

        Args:
            source: Code of the source language.
            target: Code of the target language.

        Raises:
            ValueError: If a code is unknown, or the vocabulary has no languages to choose from.
        """
        side = "source" if target is None else "target"
        raise ValueError(
            f"`{side}_language` must be None for a model without tokens of languages. "
            f"Received: {source if target is None else target!r}."
        )

    def without_prefix(self) -> "Tokenizer":
        """Returns a tokenizer that puts no space in front of a text."""
        return self

    @property
    def num_marks(self) -> int:
        """Number of ids that mark the beginning and the end of an encoded text."""
        front = 0 if self.languages is None else self.languages.size
        return 1 + self.starts_with_bos + front

    @functools.cached_property
    def plain(self) -> PlainTokenizer | None:
        """The `PlainTokenizer` with the same ids, which needs no TensorFlow, or `None`."""
        return None

    def encode(self, strings: Tensor) -> "tf.RaggedTensor":
        """Encodes strings as token ids, with the ids that begin and end a text.

        Call arguments:
            strings: UTF-8 strings, `[B]`. Invalid UTF-8 is replaced by U+FFFD.

        Returns:
            A `tf.RaggedTensor` of int32, `[B, (S)]`, whose rows end in `eos_id`.
        """
        raise NotImplementedError

    def tokenize(self, strings: Tensor) -> "tf.RaggedTensor":
        """Encodes strings as token ids, without the ids that begin and end a text.

        Call arguments:
            strings: See `encode`.

        Returns:
            A `tf.RaggedTensor` of int32, `[B, (S)]`; the empty string has no tokens.
        """
        return self.encode(strings)[:, :-1]

    def encode_masked(self, strings: Tensor) -> "tf.RaggedTensor":
        """Encodes strings as `encode` does, with `mask_id` for each mask token that they contain.

        The text between two masks is tokenised by itself, as in Hugging Face's tokenizers.

        Call arguments:
            strings: See `encode`.

        Returns:
            A `tf.RaggedTensor` of int32, `[B, (S)]`, whose rows end in `eos_id`.

        Raises:
            ValueError: If the vocabulary has no mask token.
        """
        if self.mask is None:
            raise ValueError("The vocabulary of the tokenizer must have a mask token.")
        segments = tf.strings.split(strings, self.mask)  # [B, (G)]
        texts, counts = segments.values, segments.row_lengths()
        number = tf.ragged.range(counts).values  # of each segment in its text
        is_last = tf.equal(number + 1, tf.gather(counts, segments.value_rowids()))
        if self.mask_strips:
            texts = tf.where(is_last, texts, tf.strings.regex_replace(texts, f"{SPACE}+$", ""))
        masks = tf.fill([tf.size(texts) - tf.reduce_sum(tf.cast(is_last, tf.int32))], self.mask_id)
        masks = tf.RaggedTensor.from_row_lengths(masks, tf.cast(~is_last, tf.int64), validate=False)
        pieces = tf.concat([self.tokenize(texts), masks], axis=1)  # [all segments, (P)]
        parts = [segments.with_values(pieces).merge_dims(1, 2)]  # [B, (S)]
        column = tf.ones([segments.nrows(), 1], tf.int32)
        parts.append(tf.RaggedTensor.from_tensor(self.eos_id * column))
        if self.starts_with_bos:
            parts.insert(0, tf.RaggedTensor.from_tensor(self.bos_id * column))
        return tf.concat(parts, axis=1)

    def tokenize_words(self, words: Tensor, first: Tensor) -> "tf.RaggedTensor":
        """Encodes the words of texts one by one, as `tokenize` encodes them in their text.

        Call arguments:
            words: UTF-8 strings without white space, `[W]`.
            first: Whether each of them is at the very beginning of its text, boolean `[W]`.

        Returns:
            A `tf.RaggedTensor` of int32, `[W, (P)]`.
        """
        return self.tokenize(words)

    def tokenize_with_offsets(
        self, strings: Tensor
    ) -> "tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]":
        """Encodes strings as `tokenize` does, and returns the offsets of the tokens too.

        Call arguments:
            strings: See `encode`.

        Returns:
            Three `tf.RaggedTensor`s of int32, `[B, (S)]`: ids, and the byte offsets at which each
            token begins and ends (exclusive).
        """
        raise NotImplementedError

    def tokenize_with_words(
        self, strings: Tensor
    ) -> "tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]":
        """Encodes strings as `tokenize` does, and returns the words of the tokens too.

        Call arguments:
            strings: See `encode`.

        Returns:
            Three `tf.RaggedTensor`s of int32, `[B, (S)]`: ids, and the byte offsets at which the
            word that contains each token begins and ends (exclusive), without spaces around it.
            Words are the strings that the tokenizer splits into tokens one by one.
        """
        raise NotImplementedError

    def decode(self, tokens: Tensor) -> "tf.Tensor":
        """Decodes token ids to strings.

        Call arguments:
            tokens: Integers, `[B, T]`, dense or ragged. Each row ends before its first `eos_id`;
                `pad_id` and `bos_id` are dropped everywhere.

        Returns:
            Strings, `[B]`. A row without other tokens becomes the empty string.
        """
        if isinstance(tokens, tf.RaggedTensor):
            tokens = tokens.to_tensor(self.pad_id)
        return self._decode(tf.cast(tokens, tf.int32))

    @graph_method(tokens_spec)
    def _decode(self, tokens):
        ends = tf.cast(tf.equal(tokens, self.eos_id), tf.int32)
        keep = tf.equal(tf.cumsum(ends, axis=1), 0)  # [B, T], False from the first eos on
        keep &= tf.not_equal(tokens, self.pad_id) & tf.not_equal(tokens, self.bos_id)
        return self.join(tokens, keep)

    def join(self, tokens: Tensor, keep: Tensor) -> Tensor:
        """Joins tokens to strings, in the graph.

        Call arguments:
            tokens: int32, `[B, T]`.
            keep: Boolean, `[B, T]`, true for tokens that belong to the text.

        Returns:
            Strings, `[B]`.
        """
        raise NotImplementedError

    def pieces(self, tokens: Tensor) -> list[str]:
        """Returns readable names of tokens, such as `["▁A", "▁dog", "</s>"]`; not in a graph.

        Args:
            tokens: Sequence of ids.

        Returns:
            A list of strings, one for each id.
        """
        raise NotImplementedError

    def words(self) -> list[str]:
        """Returns the text of each token by itself, in the order of the ids; not in a graph."""
        return self.pieces(range(self.vocab_size))

    def begins_words(self) -> list[bool] | None:
        """Returns for each token whether it begins a word, in the order of the ids; not in a graph.

        `None`: the tokens do not show where words begin.
        """
        return None

    def sample(self, strings: list[str], alpha: float, seed: int) -> list[list[int]]:
        """Tokenises strings at random; not in a graph.

        Args:
            strings: List of strings.
            alpha: Amount of variation, above 0 and below 1.
            seed: Integer from 0 to below 2**31. The same arguments always give the same tokens.

        Returns:
            A list of lists of ids, without `eos_id`.

        Raises:
            ValueError: If the tokenizer has no random segmentations.
        """
        raise ValueError(
            f"`subword_sampling` must be 0: {self.title} has no random segmentations. "
            f"Received: {alpha}."
        )

    def used(self, strings: list[str]) -> set[int]:
        """Returns the ids of the tokens on which the encoding of strings depends; not in a graph.

        Args:
            strings: List of strings.
        """
        return {*np.unique(self.encode(strings).values.numpy()).tolist()}

    def needed(self, used: set[int]) -> set[int]:
        """Returns the ids of the tokens that a smaller vocabulary needs: see `restricted`.

        They are the given ids, special tokens, tokens from which the tokenizer makes others, and
        all characters or bytes that are tokens, so that no other text becomes unknown.

        Args:
            used: Ids of tokens, such as those that `used` returns.
        """
        raise NotImplementedError

    def restricted(self, ids: list[int]) -> "Tokenizer":
        """Returns a tokenizer that keeps only some of the tokens, with new ids in the same order.

        If `ids` come from `needed`, all strings whose tokens are among them are encoded as before.

        Args:
            ids: Ids of the tokens to keep, in ascending order.
        """
        raise NotImplementedError

    def files(self) -> dict[str, bytes]:
        """Returns the contents of the tokenizer's files, a dictionary from `endings` to bytes."""
        raise NotImplementedError

    def code_points(self) -> dict[str, Any]:
        """Returns the code points that a program in another language needs to read `files`.

        Languages and browsers follow different versions of Unicode, and none of them the version of
        a vocabulary.

        Returns:
            Dictionary of values that JSON can represent; empty if `files` are enough.
        """
        return {}

    @classmethod
    def from_files(cls, files: dict[str, bytes]) -> "Tokenizer":
        """Returns the tokenizer from the contents of its `files`.

        Args:
            files: Dictionary from `endings` to bytes.

        Raises:
            ValueError: If they are not a vocabulary of this kind.
        """
        raise NotImplementedError

    def identity(self) -> str:
        """Returns a checksum of everything that the ids depend on."""
        checksum = hashlib.sha256(type(self).__name__.encode())
        for ending, content in self.files().items():
            checksum.update(b"%s\0%d\0%s" % (ending.encode(), len(content), content))
        return checksum.hexdigest()


def ids_of(pieces) -> dict[str, int]:
    """Returns the ids of pieces.

    Raises:
        ValueError: If a piece occurs twice.
    """
    ids = {piece: number for number, piece in enumerate(pieces)}
    if len(ids) < len(pieces):
        twice = next(piece for number, piece in enumerate(pieces) if ids[piece] != number)
        raise ValueError(f"`pieces` must not repeat a piece. Received twice: {twice!r}.")
    return ids
