"""The task of masked language modelling."""

import math
import time
from typing import Any

from keras_transformer.tasks.masked_language_modelling.config import MaskedLanguageModelConfig
from keras_transformer.tasks.task import LOSS, PERPLEXITY, TOKEN_ACCURACY, Task


class MaskedLanguageModellingTask(Task):
    """Prediction of hidden tokens of texts by a `MaskedLanguageModel`."""

    name = "masked_language_modelling"
    columns = ("text",)
    texts = {"source": ("text",)}
    training = (
        "keras_transformer.training.tasks.masked_language_modelling:MaskedLanguageModellingTraining"
    )
    config_class = MaskedLanguageModelConfig
    metrics = {"loss": LOSS, "perplexity": PERPLEXITY, "token_accuracy": TOKEN_ACCURACY}
    needs_mask = truncates_tokens = True

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.masked_language_modelling.pipeline import MaskFiller

        return MaskFiller

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Hides some tokens of texts, and measures how well a pipeline predicts them.

        The masks depend on each text alone and on the settings of the model, so that all
        evaluations of a text hide the same tokens.

        Args:
            pipeline: A `MaskFiller`.
            columns: A list that contains the list of texts.

        Returns:
            Dictionary of `accuracy`, from 0 to 100, the share of hidden tokens that are the most
            probable ones; `perplexity`, `exp` of the mean cross-entropy of the hidden tokens in
            nats, given all other tokens of their text; `tokens`, the number of hidden tokens;
            `texts`, their number; `truncated`, the number of texts longer than the model's limit,
            which are truncated; and `seconds`.

        Raises:
            ValueError: If there is no token to hide.
        """
        from keras_transformer.tasks.masked_language_modelling.metrics import score_masks

        texts = [text for text in columns[0] if text.strip()]
        begin = time.perf_counter()
        scores = score_masks(pipeline, texts)
        seconds = time.perf_counter() - begin
        if not scores.tokens:
            raise ValueError("There must be at least one token to hide. Received: none.")
        return {
            "accuracy": 100 * scores.right / scores.tokens,
            "perplexity": math.exp(-scores.log_probability / scores.tokens),
            "tokens": scores.tokens,
            "texts": len(texts),
            "truncated": scores.truncated,
            "seconds": round(seconds, 3),
        }
