"""The task of causal language modelling."""

import math
import time
from typing import Any

from keras_transformer.tasks.language_modelling.config import LanguageModelConfig
from keras_transformer.tasks.task import LOSS, PERPLEXITY, TOKEN_ACCURACY, Task


class LanguageModellingTask(Task):
    """Modelling of texts by a `LanguageModel`; see `Task`."""

    name = "language_modelling"
    columns = ("text",)
    texts = {"source": ("text",)}
    training = "keras_transformer.training.tasks.language_modelling:LanguageModellingTraining"
    config_class = LanguageModelConfig
    can_pack = truncates_tokens = True
    metrics = {"loss": LOSS, "perplexity": PERPLEXITY, "token_accuracy": TOKEN_ACCURACY}

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.language_modelling.pipeline import TextGenerator

        return TextGenerator

    def samples(self, inputs) -> list[str]:
        """Returns prompts: in turn none, one third and two thirds of the words of each text."""
        texts = [text.split() for text in inputs]
        return [
            " ".join(words[: len(words) * (number % 3) // 3]) for number, words in enumerate(texts)
        ]

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Measures the perplexity of texts.

        Args:
            pipeline: A `TextGenerator`.
            columns: A list that contains the list of texts.

        Returns:
            Dictionary of `perplexity`, `exp` of the mean cross-entropy per token in nats;
            `perplexity_per_character`, the same per character, which is comparable between
            vocabularies; `tokens` and `characters`, their numbers, with one more for the end of
            each text; `texts`, their number; `truncated`, the number of texts longer than the
            model's limit, which are not measured; and `seconds`. The first token of a text does
            not count if no token begins a text for the model: see `TextGenerator.score`.

        Raises:
            ValueError: If there is no text to measure.
        """
        texts = [text for text in columns[0] if text.strip()]
        if not texts:
            raise ValueError("There must be at least one text that is not empty. Received: none.")
        begin = time.perf_counter()
        scores = pipeline.score(texts)
        seconds = time.perf_counter() - begin
        whole = [pair for pair in zip(texts, scores, strict=True) if not pair[1].truncated]
        if not whole:
            raise ValueError("Every text is longer than the model's limit: none is measured.")
        total = sum(score.score for _, score in whole)
        tokens = sum(score.tokens for _, score in whole)
        characters = sum(pipeline.scored_characters([text for text, _ in whole]))
        return {
            "perplexity": math.exp(-total / tokens),
            "perplexity_per_character": math.exp(-total / characters),
            "tokens": tokens,
            "characters": characters,
            "texts": len(texts),
            "truncated": len(texts) - len(whole),
            "seconds": round(seconds, 3),
        }
