"""The pipeline of scores of pairs, which also sorts passages by their score for a query."""

from typing import Any

import tensorflow as tf

from keras_transformer.config.pair_layout import LAYOUTS
from keras_transformer.tasks.scoring.codec import PairCodec
from keras_transformer.tasks.scoring.model import PairScorer
from keras_transformer.tasks.single_pass.text_pairs import TextPairPass


class Reranker(TextPairPass):
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
    codec_class = PairCodec

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
