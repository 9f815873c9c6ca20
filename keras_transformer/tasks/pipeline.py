"""The bases of what trained models are used by: models, and models with their tokenizers."""

import tensorflow as tf

from keras_transformer.checks import is_integer
from keras_transformer.pretrained.read import open_checkpoint
from keras_transformer.tasks.attention import attentions
from keras_transformer.tasks.ensemble import open_together, runs_of, vocabulary_difference
from keras_transformer.tasks.strings import check_sentence
from keras_transformer.text.tokenizers import Tokenizers


class Pipeline(tf.Module):
    """A trained model in use, or several that answer together.

    Args:
        model: A model with the kind of configuration that `model_class` has, or a list of several:
            answers are then made with the mean of their probabilities, or of the values that they
            predict.

    Raises:
        TypeError: If it has another kind of configuration.
        ValueError: If there are several whose answers differ in kind.

    Attributes:
        task: The name of its task.
        model_class: The class of its model.
        request: Names of the tensors of a request.
        output: What a signature calls the answer.
        tokenizers: Its `Tokenizers`, or `None`.
        max_length: Longest input in tokens, or `None` where inputs have no length.
        generates: Whether a search generates its answers.
        has_source: Whether it does so for a source, to which the answers attend.
    """

    task = ""
    model_class = None
    request = ("sentences",)
    output = ""
    tokenizers = None
    max_length = None
    generates = has_source = False

    def __init__(self, model):
        super().__init__(name=type(self).__name__.lower())
        models = tuple(model) if isinstance(model, (list, tuple)) else (model,)
        for one in models or [model]:
            if getattr(one, "config_class", None) is not self.model_class.config_class:
                raise TypeError(
                    f"`model` must be a {self.model_class.__name__}; "
                    f"`{type(self).__name__}.from_run(FOLDER)` opens a trained run. "
                    f"Received: model of type {type(one).__name__}."
                )
        # The variables are tracked and the models only closed over: a SavedModel of a tracked
        # Keras model can be loaded by Python alone, not by TensorFlow Serving.
        self.weights = [variable.value for one in models for variable in one.variables]
        self._models = lambda: models

    @classmethod
    def from_run(cls, path, max_length=None):
        """Returns what training left in the folder of a run.

        Args:
            path: The folder, or a list of several, whose models answer together: with the mean of
                their probabilities, or of the values that they predict. Vocabularies, labels and
                inputs must be the same; all else may differ.
            max_length: See the class. `None`: the smallest of the models' `max_length`.

        Raises:
            ValueError: If a file is missing or damaged, they are not of one run, or several runs
                do not fit together.
        """
        runs = runs_of(path)
        models = [run.load_model(cls.model_class) for run in runs]
        return open_together(cls, runs, models, max_length)

    @classmethod
    def with_files_of(cls, run, model, max_length=None):
        """Returns the pipeline of a model with what else its `Run` holds for it.

        Raises:
            ValueError: If `max_length` has no effect.
        """
        _refuse_max_length(max_length, cls.task)
        return cls(model)

    @classmethod
    def from_pretrained(cls, path, max_length=None):
        """Returns the model of a checkpoint of another project, with what belongs to it.

        It answers by default as the checkpoint asks for. `keras_transformer.from_pretrained` finds
        the class by itself.

        Args:
            path: See `read_checkpoint`.
            max_length: See the class.

        Raises:
            TypeError: If the checkpoint has another model than this class.
            ValueError: If it is something else, damaged, or cannot be expressed, or `max_length`
                has no effect.
        """
        return cls.of_checkpoint(open_checkpoint(path), max_length)

    @classmethod
    def of_checkpoint(cls, checkpoint, max_length=None):
        """Returns the same for a `Checkpoint` that has been read."""
        _refuse_max_length(max_length, cls.task)
        return cls(checkpoint.model)

    @classmethod
    def parse(cls, line):
        """Returns the example that a line of text is.

        Raises:
            ValueError: If it is none: what a line must be, as the end of a sentence.
        """
        return line

    def with_model(self, model):
        """Returns the same with another model, or a list of several, as the class takes them."""
        return type(self)(model)

    @property
    def model(self):
        """The model, of several the first."""
        return self._models()[0]

    @property
    def models(self):
        """All of the models, a tuple."""
        return self._models()

    def difference(self, other):
        """Returns why another cannot answer together with this, `None` if it can.

        Args:
            other: One of the same class.

        Returns:
            The end of a sentence that begins with both.
        """
        return None

    def require_one(self, what):
        """Refuses what several models that answer together cannot do.

        Args:
            what: The end of a sentence that begins with `Several models that answer together`.

        Raises:
            ValueError: If there are several.
        """
        if len(self.models) > 1:
            raise ValueError(
                f"Several models that answer together {what}: take one of them. "
                f"Received: {len(self.models)} models."
            )

    def attention(self, example):
        """Returns what a model attends to: see `TextPipeline` and `ImageRecognizer`.

        Raises:
            ValueError: If it can be shown of no such model.
        """
        raise ValueError(f"A model for {self.task} has no attention that could be shown.")


class TextPipeline(Pipeline):
    """A trained model with its tokenizers.

    Args:
        model: A model of the class `model_class`, or a list of several: see `Pipeline`.
        tokenizer: The `Tokenizer` it was trained with, or a pair of them: of its inputs and of its
            outputs.
        max_length: Longest input and longest output in tokens, the end of the text included.
            `None`: the model's `max_length`, of several the smallest.

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
        self.max_length = _check_max_length(max_length, self.models)
        for one in self.models:
            tokenizers.check_sizes(one.config)
        self.source_tokenizer, self.target_tokenizer = tokenizers

    @classmethod
    def with_files_of(cls, run, model, max_length=None):  # noqa: D102
        return cls(model, run.load_tokenizers_of(model), max_length)

    @classmethod
    def of_checkpoint(cls, checkpoint, max_length=None):  # noqa: D102
        return cls(checkpoint.model, checkpoint.tokenizers, max_length)

    def difference(self, other):  # noqa: D102
        return super().difference(other) or vocabulary_difference(self.tokenizers, other.tokenizers)

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
            ValueError: If it is empty, or there are several models.
        """
        self.require_one("have no attention of their own")
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


def _refuse_max_length(max_length, task):
    """Refuses a limit of a model without tokens."""
    if max_length is not None:
        raise ValueError(
            f"`max_length` has no effect on a model for {task}, which has no tokens. "
            f"Received: max_length={max_length}."
        )


def _check_max_length(max_length, models):
    """Returns the longest input in tokens: `max_length`, or the smallest of the models'.

    Raises:
        TypeError: If it is not an integer.
        ValueError: If it is out of range.
    """
    most = min(model.config.max_length for model in models)
    longest = most if max_length is None else max_length
    if not is_integer(longest):
        raise TypeError(
            f"`max_length` must be an integer, or None. Received: max_length={max_length!r}."
        )
    if not 1 <= longest <= most:
        raise ValueError(
            f"`max_length` must be between 1 and the model's {most}. "
            f"Received: max_length={max_length}."
        )
    return longest
