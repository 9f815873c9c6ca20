"""Tokens of texts that are not made by merges: found before words are split, or whole words."""

import string

from keras_transformer.lazy_tensorflow import tensorflow_text, tf
from keras_transformer.tensors import Tensor
from keras_transformer.text.code_points import shifted
from keras_transformer.text.ragged_rows import row_ids
from keras_transformer.text.string_table import StringTable


class WholeWords(StringTable):
    """Table of the words that are one token, which also replaces their tokens by it."""

    def join(self, ids, tokens) -> Tensor:
        """Returns the tokens of words, with one token for those that this table has.

        Args:
            ids: What `look_up` returned, `[W]`.
            tokens: Their tokens, ragged int32 `[W, (P)]`; a word with an id has at least one.
        """
        if not self:
            return tokens
        row = row_ids(tokens)  # [T]
        lengths = tf.where(ids >= 0, tf.ones_like(tokens.row_lengths()), tokens.row_lengths())
        ids = tf.gather(ids, row)
        kept = (ids < 0) | (row != shifted(row, 1, -1))
        values = tf.boolean_mask(tf.where(ids >= 0, ids, tokens.values), kept)
        return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)


class FoundTokens:
    """Tokens such as runs of spaces; the leftmost one, and then the longest one, is found first.

    Args:
        ids: Dictionary from the tokens to their ids.
    """

    def __init__(self, ids):
        self.ids = dict(sorted(ids.items(), key=lambda item: -len(item[0])))

    def split(self, strings) -> "tuple[tf.RaggedTensor, tf.RaggedTensor]":
        """Returns the tokens and the texts between them, ragged `[B, (C)]`, and their offsets.

        Args:
            strings: UTF-8 strings, `[B]`.
        """
        pattern = "|".join(map(_escaped, self.ids))
        # The operation takes a zero byte for the end of a text.
        whole = tf.strings.regex_replace(strings, r"\x00", "\x01")
        _, begins, ends = tensorflow_text.regex_split_with_offsets(
            whole, f"({pattern})", f"({pattern})"
        )
        begins, ends = tf.cast(begins, tf.int32), tf.cast(ends, tf.int32)
        # Broadcast, because gathered strings would be a copy of the whole text for each part.
        column = tf.expand_dims(strings, 1)
        parts = tf.strings.substr(column, begins.to_tensor(), (ends - begins).to_tensor())
        return tf.RaggedTensor.from_tensor(parts, begins.row_lengths()), begins

    def look_up(self, texts) -> Tensor:
        """Returns the id of each text that is a token, int32 `[N]`; -1 for the others."""
        return StringTable(self.ids).look_up(texts)


def _escaped(token):
    return "".join(f"\\{x}" if x in string.punctuation else x for x in token)
