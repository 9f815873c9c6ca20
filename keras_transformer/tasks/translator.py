"""Translation: a `Transformer` with its tokenizers, strings in one language to another."""

from keras_transformer.tasks.conditional_generator import ConditionalGenerator
from keras_transformer.tasks.results import Translation


class Translator(ConditionalGenerator):
    """A trained `Transformer` with its tokenizers.

    Args:
        model: A `Transformer`.
        tokenizer: The `Tokenizer` it was trained with, or a pair of them, for source and target.
        max_length: Longest source and longest output in tokens, the end of the sentence included.
            `None`: the model's `max_length`.
        shortlist: A `Shortlist`: every search is among the candidates of its sentence, see
            `Shortlisted`. `None`: among all pieces.
        search: The search where none is named, a `Greedy` or a `Beam`. `None`: greedy search.

    Raises:
        TypeError: If an argument is of another type.
        ValueError: If `max_length` is above the model's, or tokenizer, shortlist and model do not
            belong together.

    Example:
        from keras_transformer import Beam
        translator = Translator.from_run("runs/demo")
        translator(["in 17 weeks", "Monday, 3 March 2031"], search=Beam(4, length_penalty=0.6))
    """

    task = "translation"
    result = Translation
    output = "translation"
    purpose = "Translates"
