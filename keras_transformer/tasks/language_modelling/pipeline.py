"""A language model in use: continuations of prompts, and scores of texts."""

import functools
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.decoding import Beam, Greedy, Sample
from keras_transformer.tasks.generator import Generator
from keras_transformer.tasks.language_modelling.model import LanguageModel
from keras_transformer.tasks.results import Score
from keras_transformer.tasks.strings import (
    check_sentences,
    map_sorted,
    trace_text_score,
    traced_once,
)
from keras_transformer.text.tokenizers import Tokenizer


class TextGenerator(Generator):
    """A trained `LanguageModel` with its tokenizer.

    Each output begins with the prompt, and its score is the log-probability of the continuation.
    With an empty prompt, the model generates a text from its beginning.

    Args:
        model: A `LanguageModel`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a text in tokens, including its end token. `None`: the model's
            `max_length`.
        search: The default search, a `Greedy` or a `Beam`. `None`: greedy search.

    Attributes:
        chat_template: The `ChatTemplate` of the run of an instruct model, or `None`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer.decoding import Sample
        from keras_transformer.pipelines import TextGenerator
        generator = TextGenerator.from_run("runs/captions")
        generator(["A dog", "Two men"], search=Sample(temperature=0.7, seed=1))
    """

    task = "language_modelling"
    model_class = LanguageModel
    chat_template: Any = None
    _shared = (*Generator._shared, "chat_template")

    def __init__(
        self,
        model: keras.Model | Sequence[keras.Model],
        tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
        max_length: int | None = None,
        search: Greedy | Beam | Sample | None = None,
    ):
        super().__init__(model, tokenizer, max_length, search)
        self._scorer = traced_once(functools.partial(trace_text_score, self))

    def score(self, texts: Sequence[str], batch_size: int = 64) -> list[Score]:
        """Returns the log-probabilities of texts.

        Args:
            texts: List of strings.
            batch_size: Number of texts scored at a time.

        Returns:
            List of `Score`. A text that is longer than the limit is truncated, and its score does
            not include an end token. If no token begins a text for the model (`attends_to_start` =
            false), the score does not include the first token of a text, which follows nothing.

        Raises:
            TypeError: If `texts` is not a list of strings.
        """

        def score(batch):
            outputs = self._scorer()(tf.constant(batch, tf.string, [len(batch)]))
            columns = (outputs[name].numpy().tolist() for name in ("score", "tokens", "truncated"))
            return [Score(*row) for row in zip(*columns, strict=True)]

        return map_sorted(score, check_sentences(texts, "texts"), batch_size)

    def scored_characters(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of characters of each text that `score` measures, its end included.

        Args:
            texts: List of strings.
        """
        counts = [len(text) + 1 for text in texts]
        if not texts or not self.hides_start:
            return counts
        first = self.target_tokenizer.encode(tf.constant(texts))[:, :1]  # ragged [B, 1]
        decoded = self.target_tokenizer.decode(first).numpy().tolist()
        return [
            max(1, count - len(text.decode(errors="replace")))  # a token may be longer than a text
            for count, text in zip(counts, decoded, strict=True)
        ]

    @classmethod
    def with_files_of(cls, run: Any, model: Any, max_length: int | None = None) -> Any:  # noqa: D102
        pipeline = super().with_files_of(run, model, max_length)
        pipeline.chat_template = run.read_chat()
        return pipeline

    @classmethod
    def of_checkpoint(cls, checkpoint: Any, max_length: int | None = None) -> Any:  # noqa: D102
        pipeline = super().of_checkpoint(checkpoint, max_length)
        pipeline.chat_template = checkpoint.chat
        return pipeline

    def with_model(self, model: Any) -> Any:  # noqa: D102
        pipeline = super().with_model(model)
        pipeline.chat_template = self.chat_template
        return pipeline

    def kept_text(self) -> Any:
        """Returns a `KeptText` of the model, which has no tokens yet.

        Raises:
            ValueError: If there are several models, or see `Continued`.
        """
        from keras_transformer.tasks.language_modelling.continued import Continued

        if len(self.models) > 1:
            raise ValueError("an ensemble returns no tokens before its search has ended.")
        return Continued(self.model, self.max_length)

    def streamer(self, count: int) -> Any:  # noqa: D102
        from keras_transformer.tasks.streams.streamer import Streamer

        return Streamer(self, count)

    @property
    def hides_start(self) -> bool:
        """True if no token begins a text for the model, or for one of several."""
        return any(model.config.decoder.hides_start for model in self.models)

    def reading(self, sentence: str) -> tuple[Any, dict[str, tuple[list[str], list[str]]], bool]:
        """Returns the tokens of the text, after the start token; see `TextPipeline.reading`."""
        ids, truncated, _ = self.encode(tf.constant([sentence]))  # [1, T], its end included
        inputs = [self.model.config.tokens.bos_id, *ids[0].numpy()[:-1].tolist()]
        pieces = self.target_tokenizer.pieces(inputs)
        return tf.constant([inputs]), {"decoder": (pieces, pieces)}, bool(truncated[0])
