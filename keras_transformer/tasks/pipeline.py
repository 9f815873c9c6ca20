"""The bases of what trained models are used by: a model, and a model with its tokenizers."""

import tensorflow as tf

from keras_transformer.checks import is_integer
from keras_transformer.run import Run
from keras_transformer.tasks.attention import attentions
from keras_transformer.tasks.strings import check_sentence
from keras_transformer.text.tokenizers import Tokenizers


class Pipeline(tf.Module):
    """A trained model in use.

    Args:
        model: A model of the class `model_class`.

    Raises:
        TypeError: If it is of another class.

    Attributes:
        task: The name of its task.
        model_class: The class of its model.
        request: Names of the tensors of a request.
        output: What a signature calls the answer.
        tokenizers: Its `Tokenizers`, or `None`.
        max_length: Longest input in tokens, or `None` where inputs have no length.
    """

    task = ""
    model_class = None
    request = ("sentences",)
    output = ""
    tokenizers = None
    max_length = None

    def __init__(self, model):
        super().__init__(name=type(self).__name__.lower())
        if not isinstance(model, self.model_class):
            raise TypeError(
                f"`model` must be a {self.model_class.__name__}; "
                f"`{type(self).__name__}.from_run(FOLDER)` opens a trained run. "
                f"Received: model of type {type(model).__name__}."
            )
        # The variables are tracked and the model is only closed over: a SavedModel of a tracked
        # Keras model can be loaded by Python alone, not by TensorFlow Serving.
        self.weights = [variable.value for variable in model.variables]
        self._model = lambda: model

    @classmethod
    def from_run(cls, path, max_length=None):
        """Returns what training left in the folder `path`.

        Raises:
            ValueError: If a file is missing or damaged, or they are not of one run.
        """
        return cls.with_files_of(Run(path), Run(path).load_model(cls.model_class), max_length)

    @classmethod
    def with_files_of(cls, run, model, max_length=None):
        """Returns the pipeline of a model with what else its `Run` holds for it.

        Raises:
            ValueError: If `max_length` has no effect.
        """
        if max_length is not None:
            raise ValueError(
                f"`max_length` has no effect on a model for {cls.task}, which has no tokens. "
                f"Received: max_length={max_length}."
            )
        return cls(model)

    @classmethod
    def parse(cls, line):
        """Returns the example that a line of text is.

        Raises:
            ValueError: If it is none: what a line must be, as the end of a sentence.
        """
        return line

    def with_model(self, model):
        """Returns the same with another model, such as a copy that computes in float32."""
        return type(self)(model)

    @property
    def model(self):
        """The model."""
        return self._model()

    def attention(self, example):
        """Returns what a model attends to: see `TextPipeline` and `ImageRecognizer`.

        Raises:
            ValueError: If it can be shown of no such model.
        """
        raise ValueError(f"A model for {self.task} has no attention that could be shown.")


class TextPipeline(Pipeline):
    """A trained model with its tokenizers.

    Args:
        model: A model of the class `model_class`.
        tokenizer: The `Tokenizer` it was trained with, or a pair of them: of its inputs and of its
            outputs.
        max_length: Longest input and longest output in tokens, the end of the text included.
            `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument is of another type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Attributes:
        source_tokenizer, target_tokenizer: Often the same.
    """

    def __init__(self, model, tokenizer, max_length=None):
        super().__init__(model)
        tokenizers = Tokenizers.of(tokenizer)
        self.max_length = _check_max_length(max_length, model.config)
        tokenizers.check_sizes(model.config)
        self.source_tokenizer, self.target_tokenizer = tokenizers

    @classmethod
    def with_files_of(cls, run, model, max_length=None):  # noqa: D102
        return cls(model, run.load_tokenizers_of(model), max_length)

    def with_model(self, model):  # noqa: D102
        return type(self)(model, self.tokenizers, self.max_length)

    def attention(self, sentence):
        """Returns what each piece attends to while the model reads a sentence.

        Args:
            sentence: A string.

        Returns:
            Dictionary from the kinds of attention that the model has, see `Attention`, to an
            `Attention` with every layer and head; the kind that shows most comes first.

        Raises:
            TypeError: If `sentence` is not a string.
            ValueError: If it is empty.
        """
        inputs, pieces, truncated = self.reading(check_sentence(sentence))
        return attentions(self.model.attention_weights(inputs), pieces, truncated)

    def reading(self, sentence):
        """Returns what `attention` looks at.

        Args:
            sentence: A string.

        Returns:
            What the model is called with, a batch of one; a dictionary from each kind of attention
            to two lists of strings, the pieces that attend and those that are attended to; and
            whether the sentence was cut.
        """
        raise NotImplementedError

    @property
    def tokenizers(self):
        """The `Tokenizers` of inputs and outputs."""
        return Tokenizers(self.source_tokenizer, self.target_tokenizer)


def _check_max_length(max_length, config):
    """Returns the longest input in tokens: `max_length`, or that of a model's configuration.

    Raises:
        TypeError: If it is not an integer.
        ValueError: If it is out of range.
    """
    longest = config.max_length if max_length is None else max_length
    if not is_integer(longest):
        raise TypeError(
            f"`max_length` must be an integer, or None. Received: max_length={max_length!r}."
        )
    if not 1 <= longest <= config.max_length:
        raise ValueError(
            f"`max_length` must be between 1 and the model's {config.max_length}. "
            f"Received: max_length={max_length}."
        )
    return longest
