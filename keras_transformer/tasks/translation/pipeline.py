"""The pipeline of translation: a `Transformer` with its tokenizers."""

from keras_transformer.tasks.conditional_generator import ConditionalGenerator
from keras_transformer.tasks.translation.answers import TranslationAnswers


class Translator(TranslationAnswers, ConditionalGenerator):
    """A trained `Transformer` that translates strings, with its tokenizers.

    Args:
        model: A `Transformer`.
        tokenizer: The `Tokenizer` of the model, or a pair of them for source and target.
        max_length: Maximum length of sources and outputs in tokens, including their end tokens.
            `None`: the model's `max_length`.
        shortlist: A `Shortlist` that restricts every search to the candidates of the sentence; see
            `Shortlisted`. `None`: the whole vocabulary.
        search: The default search, a `Greedy` or a `Beam`. `None`: greedy search.
        source_language, target_language: Languages of a multilingual model, such as `"deu_Latn"`.
            `None`: the defaults of the tokenizer.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer, shortlist and model do not
            belong together.

    Example:
        from keras_transformer import Beam
        translator = Translator.from_run("runs/demo")
        translator(["in 17 weeks", "Monday, 3 March 2031"], search=Beam(4, length_penalty=0.6))
    """

    purpose = "Translates"
    participle = "translating"
