"""Rows of token ids for late interaction: queries and passages with their marks."""

import dataclasses
from typing import Any

import tensorflow as tf

from keras_transformer.tasks.strings import encode
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Side:
    """One of both kinds of texts.

    Args:
        length: Maximum length of a row in tokens, with its marks.
        marker: Id of the marker, or `None`.
        expanded: Length to which rows are extended with `InteractionRows.expansion_id`. 0: they
            are not.
        skipped: Ids whose vectors do not count.
    """

    length: int
    marker: int | None = None
    expanded: int = 0
    skipped: tuple = ()


class InteractionRows:
    """Makes rows of token ids from texts, and states which of their vectors are compared.

    A query becomes `bos marker tokens eos` and then `expansion_id` up to a fixed length, a passage
    `bos marker tokens eos`. `bos` is missing if the vocabulary's texts do not begin with it, and
    `marker` if there is none. All tokens of a query count; of a passage all but `skipped_ids`.

    Args:
        tokenizer: The `Tokenizer`.
        longest: Maximum length of a row in tokens.
        head: The options of a `MultiVectorHead` as a dictionary.

    Reference: Khattab and Zaharia (2020), section 3.2; the skipped tokens are "filtered" there.
    """

    def __init__(self, tokenizer, longest: int, head: dict[str, Any]):
        self.tokenizer, self.longest, self.head = tokenizer, longest, head
        limits = [head["query_length"], head["passage_length"], head["expansion_length"]]
        query, passage, expanded = (min(longest, limit or longest) for limit in limits)
        expanded = 0 if head["expansion"] == "none" else min(query, expanded)
        self.query = Side(query, head["query_marker_id"], expanded)
        skipped = tuple(head["skipped_ids"])
        self.passage = Side(passage, head["passage_marker_id"], skipped=skipped)

    def of_strings(self, side, strings) -> tuple[Tensor, Tensor]:
        """Returns rows `[B, S]`, and whether each text was truncated, `[B]`.

        Args:
            side: `self.query` or `self.passage`.
            strings: UTF-8 strings `[B]`.
        """
        limit = side.length - (side.marker is not None)
        ids, truncated, _ = encode(self.tokenizer, strings, limit)
        return self._marked(side, ids), truncated

    def of_ids(self, side, ids) -> Tensor:
        """Returns rows `[B, S]` of texts that were encoded before.

        Args:
            side: `self.query` or `self.passage`.
            ids: Padded token ids `[B, T]`, as of `Tokenizer.encode`.
        """
        ids = tf.RaggedTensor.from_tensor(ids, padding=self.tokenizer.pad_id)
        space = side.length - (side.marker is not None)
        ends = tf.fill([tf.shape(ids)[0], 1], self.tokenizer.eos_id)
        words = ids[:, :-1][:, : space - 1]
        return self._marked(side, tf.concat([words, tf.RaggedTensor.from_tensor(ends)], axis=1))

    def _marked(self, side, ids):
        count, pad_id = ids.nrows(out_type=tf.int32), self.tokenizer.pad_id
        if side.marker is not None:
            front = int(self.tokenizer.starts_with_bos)
            marker = tf.RaggedTensor.from_tensor(tf.fill([count, 1], side.marker))
            ids = tf.concat([ids[:, :front], marker, ids[:, front:]], axis=1)
        if not side.expanded:
            return ids.to_tensor(pad_id)
        missing = tf.maximum(side.expanded - tf.cast(ids.row_lengths(), tf.int32), 0)
        fill = tf.fill([tf.reduce_sum(missing)], self.head["expansion_id"])
        fill = tf.RaggedTensor.from_row_lengths(fill, tf.cast(missing, tf.int64), validate=False)
        return tf.concat([ids, fill], axis=1).to_tensor(pad_id)

    def counted(self, side, rows) -> Tensor:
        """Returns which tokens of rows are compared, boolean `[B, S]`.

        Args:
            side: `self.query` or `self.passage`.
            rows: Token ids `[B, S]`.
        """
        counted = tf.not_equal(rows, self.tokenizer.pad_id)
        if not side.skipped:
            return counted
        skipped = tf.constant(side.skipped, rows.dtype)
        return counted & ~tf.reduce_any(tf.equal(tf.expand_dims(rows, 2), skipped), axis=2)
