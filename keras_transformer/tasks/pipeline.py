"""Base classes of pipelines: trained models in use, with or without tokenizers."""

import os
import typing
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.checks import is_integer, require_tensorflow
from keras_transformer.tasks.answering import Answering
from keras_transformer.tasks.attention import Attention, attentions
from keras_transformer.tasks.ensemble import open_together, runs_of, vocabulary_difference
from keras_transformer.tasks.strings import check_sentence
from keras_transformer.text.tokenizers import Tokenizer, Tokenizers

Kind = typing.TypeVar("Kind", bound="Pipeline")
TextKind = typing.TypeVar("TextKind", bound="TextPipeline")
Path = str | os.PathLike


class Pipeline(Answering, tf.Module):
    """A trained model in use, or an ensemble of several.

    Args:
        model: A model whose configuration is of the class that `model_class` has, or a list of
            several. An ensemble uses the mean of the models' probabilities, or of the values that
            they predict.

    Raises:
        TypeError: If a configuration is of another class.
        ValueError: If several models cannot form an ensemble.

    Attributes:
        model_class: Class of the model.
        request: Names of the tensors of a request.
        output: Name of the answer in a signature.
        has_source: Whether the model generates answers for a source, to which it attends.
    """

    model_class: Any = None
    request = ("sentences",)

    def check_samples(self, samples: Sequence[Any]) -> list:
        """Returns the inputs to check an export with as a list.

        Raises:
            TypeError, ValueError: If they are not inputs of the task.
        """
        raise NotImplementedError

    def __init__(self, model: keras.Model | Sequence[keras.Model]):
        require_tensorflow("pipelines and exports")
        super().__init__(name=type(self).__name__.lower())
        models: tuple[Any, ...] = tuple(model) if isinstance(model, (list, tuple)) else (model,)
        for one in models or [model]:
            if getattr(one, "config_class", None) is not self.model_class.config_class:
                raise TypeError(
                    f"`model` must be a {self.model_class.__name__}; "
                    f"`{type(self).__name__}.from_run(FOLDER)` opens a trained run. "
                    f"Received: model of type {type(one).__name__}."
                )
        # The variables are tracked, but the models are hidden in a closure: only Python can load a
        # SavedModel of a tracked Keras model, TensorFlow Serving cannot.
        self.weights = [variable.value for one in models for variable in one.variables]
        self._models = lambda: models

    @classmethod
    def from_run(
        cls: type[Kind], path: Path | Sequence[Path], max_length: int | None = None
    ) -> Kind:
        """Opens a run, or an ensemble of several runs.

        Args:
            path: Folder of the run, or a list of folders. An ensemble uses the mean of the models'
                probabilities, or of the values that they predict. Its models must have the same
                vocabularies, labels and inputs; everything else may differ.
            max_length: See the class. `None`: the smallest `max_length` of the models.

        Raises:
            ValueError: If a file is missing or damaged, the files do not belong to one run, or
                several runs cannot form an ensemble.
        """
        runs = runs_of(path)
        models = [run.load_model(cls.model_class) for run in runs]
        return open_together(cls, runs, models, max_length)

    @classmethod
    def with_files_of(cls: type[Kind], run: Any, model: Any, max_length: int | None = None) -> Kind:
        """Returns the pipeline of a model with the other files of its run.

        Args:
            run: The `Run`.
            model: Its model.
            max_length: See the class.

        Raises:
            ValueError: If `max_length` has no effect, or a file is missing or damaged.
        """
        _refuse_max_length(max_length, cls.task)
        return cls(model)

    @classmethod
    def of_checkpoint(cls: type[Kind], checkpoint: Any, max_length: int | None = None) -> Kind:
        """Returns the pipeline of a `Checkpoint` that has been read."""
        _refuse_max_length(max_length, cls.task)
        return cls(checkpoint.model)

    @classmethod
    def parse(cls, line: str) -> Any:
        """Returns the example in a line of text.

        Raises:
            ValueError: If the line is not an example. The error is the end of a sentence about the
                line.
        """
        return line

    def with_model(self: Kind, model: Any) -> Kind:
        """Returns a pipeline that differs in its model, or in its list of models."""
        return type(self)(model)

    @property
    def model(self) -> Any:
        """The model; the first of an ensemble."""
        return self._models()[0]

    @property
    def reads_text(self) -> bool:
        """`True` if the inputs of the model are the tokens of texts."""
        return self.tokenizers is not None

    @property
    def models(self) -> tuple:
        """Tuple of all models."""
        return self._models()

    def difference(self, other: "Pipeline") -> str | None:
        """Returns the reason why two pipelines cannot form an ensemble; `None` if they can.

        Args:
            other: A pipeline of the same class.

        Returns:
            The end of a sentence that begins with the names of both.
        """
        return None

    def require_one(self, what: str) -> None:
        """Requires a single model for an operation that an ensemble does not support.

        Args:
            what: End of a sentence that begins with `Models of an ensemble`.

        Raises:
            ValueError: If there are several models.
        """
        if len(self.models) > 1:
            raise ValueError(
                f"Models of an ensemble {what}: use one of them. "
                f"Received: {len(self.models)} models."
            )


class TextPipeline(Pipeline):
    """A trained model with its tokenizers.

    Args:
        model: A model of the class `model_class`, or a list of several; see `Pipeline`.
        tokenizer: The `Tokenizer` of the model, or a pair of them for inputs and outputs.
        max_length: Maximum length of inputs and outputs in tokens, including their end tokens.
            `None`: the `max_length` of the model, for an ensemble the smallest.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Attributes:
        source_tokenizer, target_tokenizer: Tokenizers of inputs and outputs, often the same object.
    """

    def __init__(
        self,
        model: keras.Model | Sequence[keras.Model],
        tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
        max_length: int | None = None,
    ):
        super().__init__(model)
        tokenizers = Tokenizers.of(tokenizer)
        self.max_length = _check_max_length(max_length, self.models)
        for one in self.models:
            tokenizers.check_sizes(one.config)
        self.source_tokenizer, self.target_tokenizer = tokenizers

    @classmethod
    def with_files_of(
        cls: type[TextKind], run: Any, model: Any, max_length: int | None = None
    ) -> TextKind:  # noqa: D102
        return cls(model, run.load_tokenizers_of(model), max_length)

    @classmethod
    def of_checkpoint(
        cls: type[TextKind], checkpoint: Any, max_length: int | None = None
    ) -> TextKind:  # noqa: D102
        return cls(checkpoint.model, checkpoint.tokenizers, max_length)

    def difference(self, other: "Pipeline") -> str | None:  # noqa: D102
        return super().difference(other) or vocabulary_difference(self.tokenizers, other.tokenizers)

    def with_model(self: TextKind, model: Any) -> TextKind:  # noqa: D102
        return type(self)(model, self.tokenizers, self.max_length)

    def attention(self, sentence: str) -> dict[str, Attention]:
        """Returns the attention weights of the model for a sentence.

        Args:
            sentence: A string.

        Returns:
            Dictionary from the kinds of attention that the model has to an `Attention` with all
            layers and heads; the most informative kind comes first.

        Raises:
            TypeError: If `sentence` is not a string.
            ValueError: If it is empty, or the pipeline is an ensemble.
        """
        self.require_one("have no attention weights in common")
        inputs, pieces, truncated = self.reading(check_sentence(sentence))
        return attentions(self.model.attention_weights(inputs), pieces, truncated)

    def reading(self, sentence: str) -> tuple[Any, dict[str, tuple[list[str], list[str]]], bool]:
        """Returns the inputs from which `attention` computes the weights.

        Args:
            sentence: A string.

        Returns:
            The arguments of the model, a batch of one; a dictionary from each kind of attention to
            two lists of strings, the tokens that attend and the tokens that are attended to; and
            whether the sentence was truncated.
        """
        raise NotImplementedError

    @property
    def tokenizers(self) -> Tokenizers:  # ty: ignore[incompatible-property-override]
        """The `Tokenizers` of inputs and outputs."""
        return Tokenizers(self.source_tokenizer, self.target_tokenizer)


def _refuse_max_length(max_length, task):
    """Raises a `ValueError` for a limit in tokens of a model without tokens."""
    if max_length is not None:
        raise ValueError(
            f"`max_length` has no effect on a model for {task}, which has no tokens. "
            f"Received: max_length={max_length}."
        )


def _check_max_length(max_length, models):
    """Returns the limit for inputs in tokens: `max_length`, or the smallest of the models'.

    Raises:
        TypeError: If `max_length` is not an integer.
        ValueError: If `max_length` is out of range.
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
