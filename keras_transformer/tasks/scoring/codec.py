"""The codec of scores of pairs of texts."""

import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.config.pair_layout import LAYOUTS
from keras_transformer.tasks.scoring.pairs import encode_pairs
from keras_transformer.tasks.single_pass.codec import mean_of
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.result import Result
from keras_transformer.tasks.single_pass.text import MODULES, quoted
from keras_transformer.tasks.single_pass.text_pairs import TextPairCodec
from keras_transformer.tasks.token_rows import checked_ids, empty_where_invalid, valid_rows
from keras_transformer.tensors import Tensor

RULE = (
    "Each row: {}; the ids of tokens are at least 0 and below vocab_size, none of them pad, bos or "
    "eos; then pad up to source_length. For any other row logit and score are 0. Other rows are "
    "not affected."
)
KINDS = {"sigmoid": "the sigmoid of `logit`", "none": "equal to `logit`"}


@dataclasses.dataclass(frozen=True)
class PairScore(Result):
    """The score of a pair of texts.

    Args:
        value: The score: the sigmoid of the logit, or the logit, as the model determines.
        logit: The logit of the model.
        truncated: Whether the pair was longer than the model's limit and was truncated.
    """

    value: float
    logit: float
    truncated: bool

    @property
    def text(self) -> str:
        """The score, as `predict` writes it: no digit is lost."""
        return str(np.float32(self.value))

    @property
    def probability(self) -> float:
        """The sigmoid of the logit."""
        return 0.5 * (1 + math.tanh(self.logit / 2))  # does not overflow

    @property
    def score(self) -> float:
        """The natural logarithm of the probability."""
        return -float(np.logaddexp(0.0, -self.logit))

    @property
    def numbers(self) -> np.ndarray:
        """The logit, in an array of one."""
        return np.array([self.logit], "float32")

    def score_of(self, other: Any) -> float:
        """Returns the own score: all results for a pair answer the same question."""
        return self.score

    def score_error(self, other: Any) -> float:
        """Returns the difference of both probabilities."""
        return abs(self.probability - other.probability)


class PairCodec(TextPairCodec):
    """Converts pairs of texts to inputs of a model, and its logits to scores.

    Args:
        tokenizer: See `TextCodec`.
        max_length: Maximum length of a row in tokens, with its marks. The longer text of a longer
            pair is truncated first.
        score_activation, pair_layout: See `ScoreHead`.
    """

    number = "logit"
    score_unit = "of the sigmoid of the logit"
    max_score_loss = {"none": 0.0, "float16": 0.005, "int8": 0.05, "int4": 0.1}
    options = ("score_activation", "pair_layout")
    nothing = {"logit": 0.0, "score": 0.0}

    def __init__(self, tokenizer, max_length, score_activation="sigmoid", pair_layout="bert"):
        super().__init__(tokenizer, max_length)
        self.score_activation, self.pair_layout = score_activation, pair_layout
        self.layout = LAYOUTS[pair_layout]
        self.rule = RULE.format(self.layout.described("bos", "eos"))

    def encode(self, query, passage) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `source`, padded token ids `[B, S]`, and `truncated`, `[B]`."""
        ids, truncated = encode_pairs(self.tokenizer, self.layout, query, passage, self.longest)
        return {"source": ids.to_tensor(self.tokenizer.pad_id)}, {"truncated": truncated}

    def screen(self, source) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: D102
        ids = self.tokenizer
        valid = valid_rows(source, ids, separators=1, ends=self.layout.ends)  # [B]
        valid &= tf.equal(source[:, 0], ids.bos_id)
        if self.layout.separators == 2:  # next to each other
            is_end = tf.cast(tf.equal(source, ids.eos_id), tf.int32)
            first = tf.equal(tf.cumsum(is_end, axis=1), 1) & tf.equal(is_end, 1)
            after = tf.pad(is_end[:, 1:], [[0, 0], [0, 1]])
            valid &= tf.reduce_any(first & tf.equal(after, 1), axis=1)
        return valid, {"source": empty_where_invalid(source, valid, ids)}

    def checked(self, source) -> dict[str, Any]:  # noqa: D102
        return {"source": checked_ids(source, self.tokenizer, self.longest, self.layout.ends)}

    def outputs(self, prediction) -> dict[str, Any]:
        """Returns `logit` and `score`, `[B]` each."""
        return self._scored(tf.squeeze(prediction, 1))

    def mean(self, outputs, rest) -> dict[str, Any]:
        """Returns the mean of the logits, and its score."""
        return self._scored(mean_of(outputs, "logit"))

    def _scored(self, logit):
        score = tf.sigmoid(logit) if self.score_activation == "sigmoid" else tf.identity(logit)
        return {"logit": logit, "score": score}

    def answers(self, outputs, rest) -> dict[str, Any]:  # noqa: D102
        return {**outputs, "truncated": rest["truncated"]}

    @classmethod
    def results(cls, answers) -> list[PairScore]:
        """Returns a `PairScore` for each pair."""
        columns = (answers[name] for name in ("score", "logit", "truncated"))
        return [
            PairScore(float(score), float(logit), bool(cut))
            for score, logit, cut in zip(*columns, strict=True)
        ]

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return {**{name: getattr(self, name) for name in self.options}, **super().metadata()}

    def _rule(self):
        return self.rule

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "PairCodec":  # noqa: D102
        options = {name: metadata[name] for name in cls.options}
        return cls(tokenizers, metadata["max_length"], **options)

    def guide(self, example) -> Guide:  # noqa: D102
        query, passage = example
        row = self.layout.described(self.tokenizer.bos_id, self.tokenizer.eos_id)
        return Guide(
            purpose="Scores pairs of texts, such as a query and a passage, with its tokenizer "
            "inside",
            request={"query": quoted([query]), "passage": quoted([passage])},
            axes={"source": "B, S"},
            notes=[
                "B: number of pairs in the request, each of a query and a passage. `score` is "
                f"{KINDS[self.score_activation]}; a higher one is better.",
                f"S: number of token ids of the longest row, at most {self.longest}: {row}; later "
                "ids are ignored. Invalid ids are an error.",
                f"Strings are UTF-8. Of a pair of more than {self.longest} tokens, the longer text "
                "is truncated first, and `truncated` is true.",
            ],
            modules=MODULES,
        )
