"""The pipeline of summarisation: a `Transformer` with its tokenizers."""

from keras_transformer.tasks.conditional_generator import ConditionalGenerator
from keras_transformer.tasks.summarization.answers import SummarizationAnswers


class Summarizer(SummarizationAnswers, ConditionalGenerator):
    """A trained `Transformer` that summarises texts, with its tokenizers.

    A text that is longer than `max_length` tokens is truncated, and its `Summary` is `truncated`.

    Args:
        model: A `Transformer`.
        tokenizer: The `Tokenizer` of the model, or a pair of them for texts and summaries.
        max_length: Maximum length of texts and summaries in tokens, including their end tokens.
            `None`: the model's `max_length`.
        shortlist, search: See `Translator`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer import Beam
        from keras_transformer.pipelines import Summarizer
        summarizer = Summarizer.from_run("runs/reports")
        summarizer(["The customer is from Chad. ..."], search=Beam(4, min_length=5))
    """

    purpose = "Summarises texts"
    participle = "summarising"
