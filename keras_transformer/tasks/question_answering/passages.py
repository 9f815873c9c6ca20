"""Passages in a graph: segments with their offsets in bytes, tokens, and windows of tokens.

In the layout "separator", an answer begins and ends at the boundary of a segment. A segment is a
sequence of letters, digits and accents, or any other single character. In scripts without spaces
between words, such as Chinese, each letter is a segment. Segments are tokenised separately, and
their offsets in the passage are known, so that an answer is always an exact quote from the passage.

In the layouts of pretrained models, the passage is tokenised as a whole. Each token is a segment,
with the offsets of the whole word that it belongs to.
"""

import dataclasses
import typing

import tensorflow as tf

from keras_transformer.config.pair_layout import LAYOUTS
from keras_transformer.tensors import Tensor

SEPARATOR = LAYOUTS["separator"]
WORD = r"[\pL\pM\pN]"
WITHOUT_SPACES = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
SPACE = r"[\s\pZ\x0b\x{85}]"
MOST_BYTES = 1024  # tokenised of a segment, because SentencePiece needs minutes for a megabyte


@dataclasses.dataclass(frozen=True)
class Passages:
    """Passages as segments and tokens, in ragged tensors.

    Args:
        begins, ends: Offsets of each segment in bytes of the passage, `[B, (G)]`, int32.
        pieces: Token ids `[B, (P)]`, int32.
        first: Index of each segment's first token in `pieces`, `[B, (G)]`, int64.
    """

    begins: typing.Any
    ends: typing.Any
    pieces: typing.Any
    first: typing.Any

    @classmethod
    def of(cls, tokenizer, passages, layout) -> "Passages":
        """Returns the passages in strings `[B]` for a `PairLayout`."""
        if not layout.whole:
            return read_passages(tokenizer, passages)
        pieces, begins, ends = tokenizer.tokenize_with_words(passages)
        first = tf.ragged.range(pieces.row_lengths())
        return cls(begins, ends, pieces, begins.with_flat_values(first.flat_values))

    @property
    def segment_of_piece(self) -> Tensor:
        """The segment that begins with each token, -1 if none does, `[B, (P)]`, int32."""
        numbers = tf.ragged.range(tf.cast(self.first.row_lengths(), tf.int32)).flat_values
        places = tf.gather(self.pieces.row_splits[:-1], self.first.value_rowids())
        places = tf.expand_dims(places + self.first.flat_values, 1)
        size = tf.shape(self.pieces.flat_values, tf.int64)[:1]
        spread = tf.scatter_nd(places, numbers + 1, size) - 1
        return self.pieces.with_flat_values(spread)


def read_passages(tokenizer, passages) -> Passages:
    """Returns the `Passages` of strings `[B]`."""
    characters, offsets = tf.strings.unicode_split_with_offsets(passages, "UTF-8")  # [B, (C)]
    row = characters.value_rowids()
    flat, offset = characters.flat_values, tf.cast(offsets.flat_values, tf.int32)
    real = tf.logical_not(tf.strings.regex_full_match(flat, SPACE))
    word = tf.strings.regex_full_match(flat, WORD)
    word &= tf.logical_not(tf.strings.regex_full_match(flat, WITHOUT_SPACES))
    joined = word[1:] & word[:-1] & tf.equal(row[1:], row[:-1])
    is_begin = real & tf.concat([tf.ones_like(real[:1]), ~joined], 0)
    length = tf.strings.length(passages)  # bytes
    after = tf.concat([offset[1:], [0]], 0)
    last = tf.concat([row[1:] != row[:-1], [True]], 0)[: tf.size(row)]
    after = tf.where(last, tf.gather(length, row), after[: tf.size(row)])
    segment = tf.cumsum(tf.cast(is_begin, tf.int32)) - 1
    count = tf.reduce_sum(tf.cast(is_begin, tf.int32))
    of_segment = tf.boolean_mask(segment, real)
    begins = tf.boolean_mask(offset, is_begin)
    ends = tf.math.unsorted_segment_max(tf.boolean_mask(after, real), of_segment, count)
    letters = tf.RaggedTensor.from_value_rowids(
        tf.boolean_mask(flat, real), of_segment, tf.cast(count, tf.int32), validate=False
    )
    rows = tf.boolean_mask(row, is_begin)
    rows_of_batch = tf.size(passages, tf.int64)
    by_row = tf.RaggedTensor.from_value_rowids(begins, rows, rows_of_batch, validate=False)
    ids, lengths = _pieces(tokenizer, tf.strings.reduce_join(letters, axis=1))
    starts = tf.cumsum(lengths, exclusive=True)  # [segments], in the batch
    total = tf.concat([starts, [tf.reduce_sum(lengths)]], 0)
    splits = tf.gather(total, by_row.row_splits)  # [B + 1]
    first = by_row.with_flat_values(starts - tf.gather(splits, rows))
    pieces = tf.RaggedTensor.from_row_splits(ids, splits, validate=False)
    return Passages(by_row, by_row.with_flat_values(ends), pieces, first)


def _pieces(tokenizer, strings):
    """Returns the tokens of all strings in a row, and the number of each, which is at least 1.

    A string without tokens gets the unknown token.
    """
    pieces = tokenizer.tokenize(tf.strings.substr(strings, 0, MOST_BYTES))
    missing = tf.cast(tf.equal(pieces.row_lengths(), 0), tf.int64)
    unknown = tf.fill([tf.cast(tf.reduce_sum(missing), tf.int32)], tokenizer.unk_id)
    filled = tf.RaggedTensor.from_row_lengths(unknown, missing, validate=False)
    pieces = tf.concat([pieces, filled], axis=1)
    return pieces.flat_values, pieces.row_lengths()


def read_questions(tokenizer, questions, longest) -> tuple[Tensor, Tensor]:
    """Tokenises questions.

    Args:
        tokenizer: A `Tokenizer`.
        questions: `[B]`, string.
        longest: Maximum length of a row in tokens.

    Returns:
        Token ids without an end token, at most half of `longest`, ragged `[B, (Q)]`; and whether
        each question was truncated, `[B]`.
    """
    limit = tokenizer.bytes_per_token * longest
    pieces = tokenizer.tokenize(tf.strings.substr(questions, 0, limit))
    truncated = (pieces.row_lengths() > longest // 2) | (tf.strings.length(questions) > limit)
    return pieces[:, : longest // 2], truncated


@dataclasses.dataclass(frozen=True)
class Windows:
    """Rows for a model: a question and a window of a passage, with the marks of a `PairLayout`.

    Args:
        source: Token ids, ragged `[R, (S)]`, int32.
        example: Number of the passage of each row, in increasing order, `[R]`, int64.
        prefix: Index in the row at which the window begins, `[R]`, int64.
        begin: Index among the passage's tokens at which the window begins, `[R]`, int64.
        none: Index in the row that stands for an answer that is not in this row, `[R]`, int64.
    """

    source: typing.Any
    example: typing.Any
    prefix: typing.Any
    begin: typing.Any
    none: typing.Any


def cut_windows(
    tokenizer, questions, passages, longest=None, stride=None, layout=SEPARATOR
) -> Windows:
    """Cuts passages into overlapping windows that fit a model with their questions.

    Args:
        tokenizer: The `Tokenizer`.
        questions: Ragged token ids `[B, (Q)]`, int32, without end tokens.
        passages: `Passages`.
        longest: Maximum length of a row in tokens. `None`: no limit and a single window.
        stride: Number of tokens between the beginnings of two windows. `None`: half of a window.
        layout: The `PairLayout`.

    Returns:
        `Windows`.
    """
    sizes = passages.pieces.row_lengths()  # [B]
    space = sizes if longest is None else longest - layout.marks - questions.row_lengths()
    space = tf.maximum(space, 1)
    step = tf.maximum(
        space // 2 if stride is None else tf.minimum(tf.cast(stride, space.dtype), space), 1
    )
    beyond = tf.maximum(sizes - space, 0)
    count = 1 + (beyond + step - 1) // step  # [B]
    example = tf.repeat(tf.range(tf.size(count, tf.int64)), count)  # [R]
    begin = tf.ragged.range(count).flat_values * tf.gather(step, example)
    length = tf.minimum(tf.gather(space, example), tf.gather(sizes, example) - begin)
    start = tf.gather(passages.pieces.row_splits[:-1], example) + begin
    places = tf.ragged.range(start, start + length)
    window = places.with_flat_values(tf.gather(passages.pieces.flat_values, places.flat_values))
    question = tf.gather(questions, example)

    def column(token):
        return tf.RaggedTensor.from_tensor(tf.fill([tf.size(example), 1], token))

    begins = [column(tokenizer.bos_id)] * layout.begins
    separators = [column(getattr(tokenizer, layout.separator))] * layout.separators
    source = tf.concat([*begins, question, *separators, window, column(tokenizer.eos_id)], axis=1)
    prefix = layout.prefix(question.row_lengths())  # [R]
    none = tf.zeros_like(prefix) if layout.begins else prefix - 1
    return Windows(source, example, prefix, begin, none)
