"""A language model in use: texts that go on from a prompt, and how probable texts are."""

import functools

import tensorflow as tf

from keras_transformer.models.language_model import LanguageModel
from keras_transformer.tasks.generator import Generator
from keras_transformer.tasks.graphs import trace_text_score, traced_once
from keras_transformer.tasks.results import Score
from keras_transformer.tasks.strings import check_sentences, map_sorted


class TextGenerator(Generator):
    """A trained `LanguageModel` with its tokenizer.

    A search begins each output with the prompt, and its score is the log-probability of what
    follows. An empty prompt is the beginning of any text.

    Args:
        model: A `LanguageModel`.
        tokenizer: The `Tokenizer` it was trained with.
        max_length: Longest text in tokens, its end included. `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument is of another type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer import Sample, TextGenerator
        generator = TextGenerator.from_run("runs/captions")
        generator(["A dog", "Two men"], search=Sample(temperature=0.7, seed=1))
    """

    task = "language_modelling"
    model_class = LanguageModel

    def __init__(self, model, tokenizer, max_length=None, search=None):
        super().__init__(model, tokenizer, max_length, search)
        self._scorer = traced_once(functools.partial(trace_text_score, self))

    def score(self, texts, batch_size=64):
        """Returns how probable the model finds texts.

        Args:
            texts: List of strings.
            batch_size: Texts scored at a time.

        Returns:
            List of `Score`; a text that is longer than the limit is cut, and its end not counted.

        Raises:
            TypeError: If `texts` is not a list of strings.
        """

        def score(batch):
            outputs = self._scorer()(tf.constant(batch, tf.string, [len(batch)]))
            columns = (outputs[name].numpy().tolist() for name in ("score", "tokens", "truncated"))
            return [Score(*row) for row in zip(*columns, strict=True)]

        return map_sorted(score, check_sentences(texts, "texts"), batch_size)

    def reading(self, sentence):
        """The pieces of the text after the one that begins every text: see `Pipeline.reading`."""
        ids, truncated, _ = self.encode(tf.constant([sentence]))  # [1, T], its end included
        inputs = [self.model.config.bos_id, *ids[0].numpy()[:-1].tolist()]
        pieces = self.target_tokenizer.pieces(inputs)
        return tf.constant([inputs]), {"decoder": (pieces, pieces)}, bool(truncated[0])
