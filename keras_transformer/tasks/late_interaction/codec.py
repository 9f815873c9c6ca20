"""The codec of late interaction: pairs of texts to rows of tokens, vectors of tokens to scores."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.late_interaction.max_sim import max_sim
from keras_transformer.tasks.late_interaction.rows import InteractionRows
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.result import Result
from keras_transformer.tasks.single_pass.text import MODULES, TextCodec, quoted
from keras_transformer.tasks.single_pass.text_pairs import TextPairCodec
from keras_transformer.tasks.token_rows import assertions, empty_where_invalid, valid_rows
from keras_transformer.tensors import Tensor

RULE = (
    "Each row: {}; then {}pad up to source_length. The ids of tokens are at least 0 and below "
    "vocab_size, none of them pad, bos or eos. For any other row all numbers are 0. Other rows are "
    "not affected. The score of a query and a passage is the sum over the query's vectors of the "
    "largest dot product with a vector of the passage; vectors of pad and of the ids in "
    "skipped_ids of a passage are left out."
)


@dataclasses.dataclass(frozen=True)
class Interaction(Result):
    """The score of a query and a passage.

    Args:
        value: The score, MaxSim: the sum over the query's tokens of their largest similarity to a
            token of the passage.
        tokens: Number of the query's tokens that were compared.
        truncated: Whether a text was longer than the model's limit and was truncated.
    """

    value: float
    tokens: int
    truncated: bool

    @property
    def text(self) -> str:
        """The score, as `predict` writes it: no digit is lost."""
        return str(np.float32(self.value))

    @property
    def mean(self) -> float:
        """The mean of the similarities that the score is the sum of, from -1 to 1."""
        return self.value / max(self.tokens, 1)

    @property
    def score(self) -> float:
        """The mean similarity of a token."""
        return self.mean

    @property
    def numbers(self) -> np.ndarray:
        """The mean similarity of a token, in an array of one."""
        return np.array([self.mean], "float32")

    def score_of(self, other: Any) -> float:
        """Returns the own mean: all results for a pair answer the same question."""
        return self.mean

    def score_error(self, other: Any) -> float:
        """Returns the difference of both means."""
        return abs(self.mean - other.mean)


class InteractionCodec(TextPairCodec):
    """Converts pairs of texts to rows of a model, and its vectors to scores.

    Each query and each passage of a request is a row; texts that occur in several pairs are
    represented once.

    Args:
        tokenizer: See `TextCodec`.
        max_length: Maximum length of a row in tokens, with its marks.
        **head: See `MultiVectorHead`.
    """

    verb, number = "represent", "similarity of a token"
    options = (
        *("query_length", "passage_length", "expansion_length", "query_marker_id"),
        *("passage_marker_id", "expansion", "expansion_id", "skipped_ids"),
    )
    nothing = {"vectors": 0.0}
    max_score_loss = {"none": 0.0, "float16": 0.002, "int8": 0.03, "int4": 0.08}
    score_unit = "of the mean similarity of a query's tokens"
    part_specs = TextCodec.request_specs
    parts = ("queries", "passages")

    def __init__(self, tokenizer, max_length, **head):
        super().__init__(tokenizer, max_length)
        self.rows = InteractionRows(self.tokenizer, max_length, head)
        self.head = {name: head[name] for name in self.options}
        self.longest = max(self.rows.query.length, self.rows.passage.length)

    def encode(self, query, passage) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `source`, a row for each different query, then for each different passage.

        The rest are `query` and `passage`, `[B]`, the numbers of the rows of a pair among these
        rows; `query_counted` and `passage_counted`, which tokens of these rows are compared; and
        `truncated`, `[B]`.
        """
        sides, rest, cut = [], {}, []
        for name, strings in (("query", query), ("passage", passage)):
            side = getattr(self.rows, name)
            different, number = tf.unique(strings)
            ids, truncated = self.rows.of_strings(side, different)
            rest |= {name: number, f"{name}_counted": self.rows.counted(side, ids)}
            cut.append(tf.gather(truncated, number))
            sides.append(ids)
        width = tf.maximum(*(tf.shape(ids)[1] for ids in sides))
        pad_id = self.tokenizer.pad_id
        source = [
            tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]], constant_values=pad_id)
            for ids in sides
        ]
        return {"source": tf.concat(source, axis=0)}, {**rest, "truncated": cut[0] | cut[1]}

    def screen(self, source) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: D102
        ids = self.tokenizer
        after = self._after_text(source)  # [B, S]
        text = tf.where(after, ids.pad_id, source)
        real = tf.not_equal(source, ids.pad_id)
        number = tf.cumsum(tf.ones_like(source), axis=1)  # from 1
        length = tf.reduce_sum(tf.cast(real, tf.int32), axis=1, keepdims=True)
        whole = tf.equal(real, number <= length) & (~after | ~real | self._is_expansion(source))
        valid = valid_rows(text, ids, separators=int(ids.starts_with_bos))
        valid &= tf.reduce_all(whole, axis=1)
        return valid, {"source": empty_where_invalid(source, valid, ids)}

    def checked(self, source) -> dict[str, Any]:
        """Returns rows after checking them; ids that follow text and expansion are ignored.

        TensorFlow Serving pads the rows of a batch with the first id of a request, not with
        `pad_id`.
        """
        ids = self.tokenizer
        source = tf.pad(source, [[0, 0], [0, 1]], constant_values=ids.pad_id)
        after = self._after_text(source)  # [B, S]
        ends = tf.cast(after & ~self._is_expansion(source), tf.int32)
        source = tf.where(tf.cumsum(ends, axis=1) > 0, ids.pad_id, source)
        complete = tf.reduce_any(tf.equal(source, ids.eos_id), axis=1)  # [B]
        real = tf.cast(tf.not_equal(source, ids.pad_id), tf.int32)
        lengths = tf.where(complete, tf.reduce_sum(real, axis=1), 1)
        checks = {
            f"`source` must have the id {ids.eos_id} after the text of each row.": complete,
            f"`source` must have at most {self.longest} ids in a row.": lengths <= self.longest,
            f"`source` must hold ids from 0 to {ids.vocab_size - 1}.": (source >= 0)
            & (source < ids.vocab_size),
        }
        with tf.control_dependencies(assertions(checks)):
            return {"source": source[:, : tf.reduce_max(lengths)]}

    def _after_text(self, source):
        """Returns which ids follow the first `eos_id` of a row, boolean `[B, S]`."""
        is_end = tf.cast(tf.equal(source, self.tokenizer.eos_id), tf.int32)
        return (tf.cumsum(is_end, axis=1) - is_end) > 0

    def _is_expansion(self, source):
        expansion = self.head["expansion_id"]
        return tf.equal(source, -1 if expansion is None else expansion)

    def outputs(self, prediction) -> dict[str, Any]:
        """Returns `vectors` `[R, S, N]`."""
        return {"vectors": prediction}

    def answers(self, outputs, rest) -> dict[str, Any]:
        """Returns `score`, MaxSim; `query_tokens`, the number of its terms; and `truncated`."""
        vectors = tf.convert_to_tensor(outputs["vectors"])  # [R, S, N]
        count = tf.shape(rest["query_counted"])[0]
        pairs = {}
        for name, rows in (("query", vectors[:count]), ("passage", vectors[count:])):
            counted = tf.convert_to_tensor(rest[f"{name}_counted"])  # [rows, S]
            rows = rows[:, : tf.shape(counted)[1]]  # without further padding
            pairs[name] = [tf.gather(values, rest[name]) for values in (rows, counted)]
        (query, query_counted), (passage, passage_counted) = pairs["query"], pairs["passage"]
        return {
            "score": max_sim(query, passage, query_counted, passage_counted),
            "query_tokens": tf.reduce_sum(tf.cast(query_counted, tf.int32), axis=1),
            "truncated": rest["truncated"],
        }

    @classmethod
    def results(cls, answers) -> list[Interaction]:
        """Returns an `Interaction` for each pair."""
        columns = (answers[name] for name in ("score", "query_tokens", "truncated"))
        return [
            Interaction(float(score), int(tokens), bool(cut))
            for score, tokens, cut in zip(*columns, strict=True)
        ]

    def encode_part(self, part, sentences) -> tuple[Tensor, Tensor, Tensor]:
        """Returns rows `[B, S]`, which of their tokens are compared, and `truncated`, `[B]`.

        Args:
            part: One of `parts`.
            sentences: Strings `[B]`.
        """
        side = self.rows.query if part == self.parts[0] else self.rows.passage
        ids, truncated = self.rows.of_strings(side, sentences)
        return ids, self.rows.counted(side, ids), truncated

    def answered_part(self, part, texts, run) -> dict[str, np.ndarray]:  # noqa: D102
        sentences = tf.constant(list(texts), tf.string, [len(texts)])
        ids, counted, truncated = self.encode_part(part, sentences)
        vectors = np.asarray(run(source=ids.numpy())["vectors"])[:, : ids.shape[1]]
        return {"vectors": vectors, "mask": counted.numpy(), "truncated": truncated.numpy()}

    def part_requests(self, examples) -> dict[str, dict[str, Tensor]]:  # noqa: D102
        return {
            part: {"sentences": tf.constant(texts, tf.string, [len(examples)])}
            for part, texts in zip(self.parts, zip(*examples, strict=True), strict=True)
        }

    def joined(self, parts) -> dict[str, Any]:  # noqa: D102
        (query, query_mask), (passage, passage_mask) = (
            [tf.convert_to_tensor(parts[part][name]) for name in ("vectors", "mask")]
            for part in self.parts
        )
        query_part, passage_part = (parts[part]["truncated"] for part in self.parts)
        return {
            "score": max_sim(query, passage, query_mask, passage_mask),
            "query_tokens": tf.reduce_sum(tf.cast(query_mask, tf.int32), axis=1),
            "truncated": tf.logical_or(query_part, passage_part),
        }

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        head = {**self.head, "skipped_ids": list(self.head["skipped_ids"])}
        return {**super().metadata(), **head}

    def _rule(self):
        head = self.head
        begin = ["bos"] * self.tokenizer.starts_with_bos
        if head["query_marker_id"] is not None or head["passage_marker_id"] is not None:
            begin.append("the marker of a query or a passage")
        row = ", ".join([*begin, "the ids of a text's tokens", "eos, once"])
        fill = "" if head["expansion"] == "none" else "in a query expansion_id as needed; then "
        return RULE.format(row, fill)

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "InteractionCodec":  # noqa: D102
        options = {name: metadata[name] for name in cls.options}
        return cls(tokenizers, metadata["max_length"], **options)

    def guide(self, example) -> Guide:  # noqa: D102
        query, passage = example
        return Guide(
            purpose="Scores pairs of a query and a passage by vectors of their tokens, with its "
            "tokenizer inside",
            request={"query": quoted([query]), "passage": quoted([passage])},
            axes={"source": "B, S", "vectors": "B, S, N", "mask": "B, S"},
            notes=[
                "B: number of pairs, or of texts in the request. `score` is the sum over the "
                "query's tokens of the largest dot product with a token of the passage (MaxSim), "
                "and `query_tokens` is the number of its terms; a higher score is better.",
                "The signatures `queries` and `passages` return the vectors of texts, of unit "
                "length: N features for each of S tokens. `mask` is true for those that are "
                "compared; other vectors are zeros. With `q`, `p` and `mask` of one query and one "
                "passage, MaxSim in NumPy is `(q @ p[mask].T).max(1).sum()`, if `q` has only "
                "tokens that are compared.",
                f"Strings are UTF-8. A query of more than {self.rows.query.length} tokens, or a "
                f"passage of more than {self.rows.passage.length}, is truncated, and `truncated` "
                "is true. `tokens` takes rows of token ids, see the metadata of the SavedModel.",
            ],
            modules=MODULES,
        )
