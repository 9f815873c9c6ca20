"""The codec of token classification: a label for each word of a text."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.result import Choice, log_of
from keras_transformer.tasks.single_pass.text import MODULES, RULE, quoted
from keras_transformer.tasks.single_pass.text_labels import TextLabelCodec
from keras_transformer.tasks.token_classification.spans import (
    OUTSIDE,
    Span,
    span_metrics,
    spans_of,
    words_of,
)
from keras_transformer.tasks.token_classification.words import encode_words
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class TokenClassification(Choice):
    """The labels that a model predicts for the words of a text.

    Args:
        labels: The most probable label of each of the W words; `O` for words beyond the model's
            limit.
        truncated: Whether there are words beyond the limit.
        probabilities: Array `[W, C]`, float32, in the order of the model's labels; zeros for
            words beyond the limit.
    """

    labels: tuple
    truncated: bool
    probabilities: np.ndarray = dataclasses.field(compare=False, repr=False)  # ty: ignore[incompatible-attribute-override]

    @property
    def text(self) -> str:
        """The labels, separated by spaces, as `predict` writes them."""
        return " ".join(self.labels)

    @property
    def spans(self) -> list[Span]:
        """List of the `Span`s that the labels encode."""
        return spans_of(self.labels)

    def score_of(self, other: Any) -> float:
        """Returns the mean log-probability of another result's labels; 0 if there is no word."""
        read = other.probabilities.any(axis=1)
        places = other.probabilities[read].argmax(axis=1)
        chosen = np.take_along_axis(self.probabilities[read], places[:, None], axis=1)
        return float(log_of(chosen).mean()) if chosen.size else 0.0

    def is_tied(self, other: Any, tolerance: float) -> bool:
        """Returns whether words with different labels are ties, within 2 * `tolerance`."""
        if len(self.labels) != len(other.labels):
            return False
        differ = [a != b for a, b in zip(self.labels, other.labels, strict=True)]
        second, top = np.sort(self.probabilities[differ], axis=1)[:, -2:].T
        return bool(np.all(top - second <= 2 * tolerance))


class TokenClassificationCodec(TextLabelCodec):
    """Converts texts to inputs of a model, and its outputs to labels of words.

    Args:
        tokenizer, max_length, labels: See `TextLabelCodec`.
    """

    verb, score_unit = "label", "nats per word"
    rule = RULE.format(
        "The label of a word is the one predicted for its first token, which begins with U+2581 in "
        "SentencePiece, with a space in byte-level BPE and without ## in WordPiece. For any other "
        "row all probabilities are 0."
    )

    def encode(self, sentences) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `source` and, as the rest, `first` and `truncated`.

        `first`, `[B, W]`, is the index of each word's first token, -1 after the last word;
        `truncated`, `[B]`, whether the text was truncated.
        """
        ids, first, truncated = encode_words(self.tokenizer, sentences, self.longest)
        rest = {"first": first.to_tensor(-1), "truncated": truncated}
        return {"source": ids.to_tensor(self.tokenizer.pad_id)}, rest

    def answers(self, outputs, rest) -> dict[str, Any]:
        """Returns `labels` `[B, W]`, empty after the last word, and their probabilities."""
        probabilities = tf.convert_to_tensor(outputs["probabilities"])  # [B, S, C]
        first = rest["first"]  # [B, W]
        limit = tf.cast(self.longest - 1, first.dtype)  # index of the end token
        read = (first >= 0) & (first < limit)  # [B, W]
        of_words = tf.gather(probabilities, tf.where(read, first, 0), batch_dims=1)  # [B, W, C]
        of_words = tf.where(tf.expand_dims(read, 2), of_words, 0.0)
        named = self.named({"probabilities": of_words})
        labels = tf.where(read, named.pop("label"), tf.where(first >= 0, OUTSIDE, ""))
        return {"labels": labels, **named, "truncated": rest["truncated"]}

    @classmethod
    def results(cls, answers) -> list[TokenClassification]:
        """Returns a `TokenClassification` for each text."""
        columns = (answers[name] for name in ("labels", "truncated", "probabilities"))
        results = []
        for names, truncated, probabilities in zip(*columns, strict=True):
            labels = tuple(name.decode() for name in names if name)
            results.append(
                TokenClassification(labels, bool(truncated), probabilities[: len(labels)])
            )
        return results

    def guide(self, example) -> Guide:  # noqa: D102
        texts, strings = self.notes()
        labels = ", ".join(f"`{label}`" for label in self.labels)
        of_words, of_tokens = "B, W", "B, S"
        return Guide(
            purpose="Labels the words of texts, with its tokenizer inside",
            request={"sentences": quoted([example])},
            axes={
                **dict.fromkeys(("labels", "probability"), of_words),
                **dict.fromkeys(("source", "label"), of_tokens),
                "probabilities": "B, W, C",
            },
            notes=[
                texts,
                "W: number of words of the longest text, separated by white space; shorter texts "
                "have empty labels at their end. With token ids, there is a label for each token, "
                "and S takes the place of W: the label of a word is the label of its first token.",
                f"C: the {len(self.labels)} labels {labels}.",
                f"{strings} Words beyond it have the label `{OUTSIDE}` and probabilities of 0.",
            ],
            modules=MODULES,
        )

    def quality(self, results, references) -> dict[str, Any]:
        """Returns `span_f1`, from 0 to 100."""
        answers = [list(result.labels) for result in results]
        return {"span_f1": span_metrics(answers, [words_of(row) for row in references])["span_f1"]}
