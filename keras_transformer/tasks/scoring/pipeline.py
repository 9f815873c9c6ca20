"""The pipeline of scores of pairs, which also sorts passages by their score for a query."""

import typing
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.config.pair_layout import LAYOUTS
from keras_transformer.ordering import descending
from keras_transformer.tasks.scoring.codec import PairCodec
from keras_transformer.tasks.scoring.model import PairScorer
from keras_transformer.tasks.single_pass.text import TextPass
from keras_transformer.tasks.strings import check_sentences


class Ranked(typing.NamedTuple):
    """A passage in the order of `Reranker.rank`.

    Attributes:
        index: Its index in the list of passages.
        score: Its score for the query.
        passage: The passage.
    """

    index: int
    score: float
    passage: str


class Reranker(TextPass):
    """A trained `PairScorer` with its tokenizer.

    Args:
        model: A `PairScorer`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a pair in tokens, including its marks; see `PairCodec`.
            `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer.pipelines import Reranker
        reranker = Reranker.from_run("runs/reranker")
        reranker.rank("who wrote Faust?", ["Goethe wrote Faust.", "Mozart wrote operas."])
    """

    task = "scoring"
    model_class = PairScorer
    request = ("query", "passage")
    output = "score"
    codec_class = PairCodec

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

    def reading(self, sentence: str) -> tuple[Any, dict[str, tuple[list[str], list[str]]], bool]:
        """Returns the tokens of a pair; see `TextPipeline.reading`."""
        try:
            query, passage = self.parse(sentence)
        except ValueError as error:
            raise ValueError(f"`sentence` {error}") from None
        inputs, rest = self.codec.encode(tf.constant([query]), tf.constant([passage]))
        ids = inputs["source"]  # [1, S]
        pieces = self.source_tokenizer.pieces(ids[0].numpy())
        return ids, {"encoder": (pieces, pieces)}, bool(rest["truncated"][0])

    def make_codec(self) -> PairCodec:  # noqa: D102
        head = self.model.config.head
        marks = LAYOUTS[head.pair_layout].marks
        if self.max_length is not None and self.max_length < marks + 2:
            raise ValueError(
                f"`max_length` must be at least {marks + 2}, for a token of both texts and the "
                f"marks around them. Received: {self.max_length}."
            )
        options = {name: getattr(head, name) for name in PairCodec.options}
        return PairCodec(self.tokenizers, self.max_length, **options)
