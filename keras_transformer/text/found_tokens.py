"""Tokens that are found in texts before words are split, in the graph."""

import string

import tensorflow as tf
import tensorflow_text

from keras_transformer.tensors import Tensor


class FoundTokens:
    """Tokens such as runs of spaces; the leftmost one, and then the longest one, is found first.

    Args:
        ids: Dictionary from the tokens to their ids.
    """

    def __init__(self, ids):
        self.ids = dict(sorted(ids.items(), key=lambda item: -len(item[0])))

    def split(self, strings) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
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
        equal = tf.equal(tf.expand_dims(texts, 1), tf.constant(list(self.ids)))  # [N, tokens]
        ids = tf.constant(list(self.ids.values()), tf.int32)
        return tf.reduce_max(tf.where(equal, ids, -1), axis=1)


def _escaped(token):
    return "".join(f"\\{x}" if x in string.punctuation else x for x in token)
