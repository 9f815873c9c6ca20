"""Codecs and pipelines of models that score pairs of texts, such as a query and a passage."""

import typing
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.ordering import descending
from keras_transformer.tasks.single_pass.text import TextCodec
from keras_transformer.tasks.single_pass.text_pass import TextPass
from keras_transformer.tasks.strings import check_sentences
from keras_transformer.tensors import Tensor
from keras_transformer.text.pairs import parse


class TextPairCodec(TextCodec):
    """A codec whose examples are pairs of strings, query and passage, that get a score."""

    verb, example = "score", "pair of texts"
    sorts = True
    request_specs = {
        name: tf.TensorSpec([None], tf.string, name=name) for name in ("query", "passage")
    }

    @classmethod
    def is_one(cls, examples) -> bool:
        """Returns whether `examples` is a pair of strings."""
        return isinstance(examples, (list, tuple)) and [*map(type, examples)] == [str, str]

    @classmethod
    def check(cls, examples) -> list:  # noqa: D102
        listed = isinstance(examples, (list, tuple))
        if not listed or not all(cls.is_one(pair) for pair in examples):
            raise TypeError(
                "`examples` must be a list of pairs of strings, query and passage. "
                f"Received: {examples!r}."
            )
        return list(examples)

    @classmethod
    def check_samples(cls, examples) -> list:  # noqa: D102
        examples = cls.check(examples)
        if not any(text.strip() for pair in examples for text in pair):
            raise ValueError(
                "There must be at least one pair with a text to check an export with. "
                f"Received: {len(examples)} pairs."
            )
        return examples

    @classmethod
    def parse(cls, line) -> Any:  # noqa: D102
        return parse(line)

    @staticmethod
    def size(example) -> int:  # noqa: D102
        return len(example[0]) + len(example[1])

    @classmethod
    def group(cls, example) -> str:
        """Returns the query."""
        return example[0]

    @classmethod
    def request(cls, examples) -> dict[str, Tensor]:  # noqa: D102
        queries, passages = zip(*examples, strict=True) if examples else ((), ())
        return {
            "query": tf.constant(queries, tf.string, [len(examples)]),
            "passage": tf.constant(passages, tf.string, [len(examples)]),
        }


class Ranked(typing.NamedTuple):
    """A passage in the order of `rank`.

    Attributes:
        index: Its index in the list of passages.
        score: Its score for the query.
        passage: The passage.
    """

    index: int
    score: float
    passage: str


class TextPairPass(TextPass):
    """A pipeline whose codec is a `TextPairCodec`."""

    request = ("query", "passage")
    output = "score"

    def score(self, pairs: Sequence[tuple[str, str]], batch_size: int = 64) -> np.ndarray:
        """Returns the score of each pair of a list, float32 `[B]`.

        Args:
            pairs: List of pairs of strings, query and passage.
            batch_size: Number of pairs scored at a time. A batch contains pairs of similar length.

        Raises:
            TypeError: If `pairs` is not a list of pairs of strings.
        """
        results = self.answer(self.codec.check(pairs), batch_size=batch_size)
        return np.array([result.value for result in results], "float32")

    def rank(
        self, query: str, passages: Sequence[str], top_k: int | None = None, batch_size: int = 64
    ) -> list[Ranked]:
        """Returns passages in the order of their scores for a query, the highest first.

        Passages with equal scores keep their order, and those whose score is NaN come last.

        Args:
            query: A string.
            passages: List of strings.
            top_k: Maximum number of passages to return. `None`: all.
            batch_size: See `score`.

        Raises:
            TypeError: If `query` is not a string or `passages` is not a list of strings.
            ValueError: If `top_k` is not positive.
        """
        if not isinstance(query, str):
            raise TypeError(f"`query` must be a string. Received: {query!r}.")
        if top_k is not None:
            check_count("top_k", top_k)
        passages = check_sentences(passages, "passages")
        scores = self.score([(query, passage) for passage in passages], batch_size)
        order = descending(scores)[:top_k]
        return [Ranked(number, float(scores[number]), passages[number]) for number in order]
