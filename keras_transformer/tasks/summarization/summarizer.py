"""Summarisation: a `Transformer` with its tokenizers, texts to what matters in them."""

from keras_transformer.tasks.conditional_generator import ConditionalGenerator
from keras_transformer.tasks.results import Summary


class Summarizer(ConditionalGenerator):
    """A trained `Transformer` that summarises texts, with its tokenizers.

    A text that is longer than `max_length` tokens is cut, and its `Summary` is `truncated`.

    Args:
        model: A `Transformer`.
        tokenizer: The `Tokenizer` it was trained with, or a pair of them, for texts and summaries.
        max_length: Longest text and longest summary in tokens, their ends included. `None`: the
            model's `max_length`.

    Raises:
        TypeError: If an argument is of another type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer import Beam, Summarizer
        summarizer = Summarizer.from_run("runs/reports")
        summarizer(["The customer is from Chad. ..."], search=Beam(4, min_length=5))
    """

    task = "summarization"
    result = Summary
    output = "summary"
    purpose = "Summarises texts"
