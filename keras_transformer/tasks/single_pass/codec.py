"""The interface of codecs: everything around a model that answers in one pass.

A `Codec` converts requests to the model's inputs, and the model's outputs to answers. Programs,
SavedModels and .tflite files share it:

    request -> encode -> inputs -> model -> outputs -> answers -> results
"""

import abc
import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tensors import Tensor

Kind = TypeVar("Kind", bound="Codec")


@dataclasses.dataclass(frozen=True)
class NoChoices:
    """The choices of requests to a model that has none."""

    command_options: ClassVar[tuple[str, ...]] = ()
    names: ClassVar[tuple[str, ...]] = ()
    has_languages: ClassVar[bool] = False


class Codec(abc.ABC):
    """Converts requests to the inputs of a model, and its outputs to answers.

    Tensors are in dictionaries by their names: the request, `[B, ...]`; the inputs and outputs of
    the model, `[R, ...]`, where R is B unless an example has several rows; the rest, other tensors
    that `answers` needs; and the answers, `[B, ...]`, including the `output` of the pipeline.

    Attributes:
        verb: Beginning of the names of a .tflite file's signatures.
        example, number: Nouns for an input and for one of the numbers, for messages.
        tolerance: Maximum difference between the numbers of two runtimes in float32.
        max_score_loss: Dictionary from quantisations to the maximum mean error of a quantised
            model's scores.
        score_unit: Unit of this error: see `Result.score_error`.
        blank: Whether an empty line of text has an empty answer.
        signature: Name of the SavedModel's signature for the inputs of the model. `None`: no
            signature.
        longest: Maximum length of a row of the inputs, for example in tokens. `None`: rows have no
            length.
        request_specs: Dictionary of the `tf.TensorSpec`s of a request.
        option_specs: Dictionary of the `tf.TensorSpec`s of settings that a request to the signature
            `options` also has. Empty: there is no such signature.
        rule: Sentences for the metadata of a file: the form of a valid row of the inputs, and the
            outputs for an invalid one.
        nothing: Dictionary from the outputs to their numbers for an invalid row.
        own_metadata: Names of those fields of `metadata` that may differ between the models of an
            ensemble, such as `"scale"`, or `"table.filled"` for a field of a dictionary.
        sorts: Whether answers have a `value` by which lines are sorted in groups; see `group`.
        simulates: Whether a call answers one series as a whole; see `SeriesCodec.simulate`.
        padding: Dictionary from the inputs to the numbers that pad them.
        suffixes: Suffixes of the files that examples are the paths of, such as `".png"`.
        settings: Names of the settings of `changed`.
        choices: What a request may choose, such as the language: `Choices`, `TextPrompts` or
            `NoChoices`.
        most: Maximum number of examples that a SavedModel answers at a time. `None`: no limit.
        parts: Names of further signatures of a SavedModel, each for a part of an example; see
            `part_requests` and `joined`.
        further_signatures: Names of further signatures with other inputs, whose outputs are those
            of the model; see `encoded`.
        is_stored: Whether a SavedModel holds `metadata` and the tokenizers as well, so that an
            opened one computes the inputs of the model itself.
        together: Number of examples with which a batch is full, whatever their sizes. `None`: no
            such number.
    """

    verb, example, number = "answer", "example", "number"
    # Runtimes add numbers in different orders. Measured: probabilities differ by up to 1e-6.
    tolerance = 1e-4
    max_score_loss = {"none": 0.0, "float16": 0.01, "int8": 0.1, "int4": 0.2}
    score_unit = "nats"
    blank = True
    signature: Any = None
    longest: Any = None
    most: int | None = None
    together: int | None = None
    own_metadata = suffixes = settings = parts = ()
    further_signatures: tuple[str, ...] = ()
    request_specs = {}
    option_specs = {}
    choices: Any = NoChoices()
    simulates = sorts = is_stored = False
    rule = ""
    nothing = padding = {}

    # Class methods, which also work for a SavedModel without metadata

    @classmethod
    def of_lines(cls, metadata: dict[str, Any]) -> Any:
        """Returns a codec for lines of text and a SavedModel, by default the class itself.

        Args:
            metadata: Result of `line_metadata`.

        Raises:
            KeyError: If a field is missing.
        """
        return cls

    @classmethod
    def is_one(cls, examples: Any) -> bool:
        """Returns whether `examples` is one example, not a list of examples."""
        return isinstance(examples, (str, bytes, os.PathLike))

    @classmethod
    @abc.abstractmethod
    def check(cls, examples: Sequence[Any]) -> list:
        """Returns examples as a list.

        Raises:
            TypeError: If `examples` is not a list of examples.
        """

    @classmethod
    def check_samples(cls, examples: Sequence[Any]) -> list:
        """Returns the examples to check an export with as a list.

        Raises:
            TypeError: If `examples` is not a list of examples.
            ValueError: If there is no example to check with.
        """
        examples = cls.check(examples)
        if not examples:
            raise ValueError(f"There must be at least one {cls.example} to check an export with.")
        return examples

    @classmethod
    def parse(cls, line: str) -> Any:
        """Returns the example in a line of text.

        Raises:
            ValueError: If the line is not an example. The error is the end of a sentence about the
                line.
        """
        return line

    @classmethod
    def verify(cls, example: Any) -> Any:
        """Returns an example unchanged after checking that the files it names can be read.

        Raises:
            ValueError: If a file cannot be read; the error is one line that names it.
        """
        return example

    @staticmethod
    def size(example: Any) -> int:
        """Returns a number for sorting: a batch contains examples of similar size."""
        return len(example)

    @classmethod
    def group(cls, example: Any) -> Any:
        """Returns what all examples that are sorted together have in common."""
        return None

    @staticmethod
    def shown(example: Any) -> Any:
        """Returns an example in the form shown in a report."""
        return example

    @classmethod
    @abc.abstractmethod
    def request(cls, examples: Sequence[Any]) -> dict[str, Tensor]:
        """Returns the request for a list of examples: a dictionary of tensors."""

    @classmethod
    @abc.abstractmethod
    def results(cls, answers: dict[str, Any]) -> list:
        """Returns a `Result` for each example.

        Args:
            answers: Result of `answers`, as a dictionary of arrays.
        """

    @property
    def export_settings(self) -> tuple[str, ...]:
        """Names of the settings of `changed_export`."""
        return tuple(self.settings)

    def changed_export(self: Kind, **settings: Any) -> Kind:
        """Returns the codec of an export that differs in settings, see `changed`."""
        return self.changed(**settings)

    def answered(
        self,
        examples: list,
        encode: Callable[..., Any],
        answer: Callable[..., list],
        run: Callable[..., dict[str, Any]],
    ) -> list:
        """Returns a `Result` for each of a list of examples, by a model that has been exported.

        Args:
            examples: Result of `check`.
            encode: Function from examples to the inputs of the model, and the rest; see `encode`.
            answer: Function from both to a list of `Result`s.
            run: Function that runs one of the `further_signatures`, given its name and its inputs
                by name, and returns its outputs.
        """
        return answer(*encode(examples))

    def encoded(
        self, signature: str | None, examples: list
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns the inputs of a signature for a list of examples, and the rest; see `encode`.

        Args:
            signature: One of `further_signatures`, or another name for the inputs of the model.
            examples: Result of `check`.
        """
        return self.encode(**self.request(examples))

    def options(self, examples: Sequence[Any]) -> dict[str, Tensor]:
        """Returns tensors of `option_specs` that stand for the defaults, one for each example."""
        return {}

    def answered_part(
        self, part: str, texts: Sequence[str], run: Callable[..., dict]
    ) -> dict[str, Any]:
        """Returns the answers to a part, arrays `[B, ...]` by name.

        Args:
            part: One of `parts`.
            texts: Sequence of B strings.
            run: Function that runs the model on its inputs, arrays by name.
        """
        raise NotImplementedError

    def part_requests(self, examples: Sequence[Any]) -> dict[str, dict[str, Tensor]]:
        """Returns the requests to the `parts` for a list of examples, by their names."""
        raise NotImplementedError

    def joined(self, parts: dict[str, dict[str, Any]]) -> dict[str, Tensor]:
        """Returns `answers` from the answers to the `parts`, by their names."""
        raise NotImplementedError

    def changed(self: Kind, **settings: Any) -> Kind:
        """Returns a codec with other values of its `settings`, for the same model."""
        raise NotImplementedError

    def unread(self, count: int) -> dict[str, Tensor]:
        """Returns valid inputs of the model, for a graph that ignores them beside other inputs.

        Args:
            count: Number of rows.
        """
        raise NotImplementedError

    def plainly_encoded(self, examples: list) -> Any | None:
        """Returns the result of `encode` as arrays, computed without TensorFlow.

        Args:
            examples: Result of `check`.

        Returns:
            Two dictionaries; `None` if the codec or its tokenizer has no plain form.
        """
        return None

    # In a graph

    @abc.abstractmethod
    def encode(self, **request: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns the inputs of the model and the rest, two dictionaries of tensors."""

    @abc.abstractmethod
    def outputs(self, prediction: Any) -> dict[str, Tensor]:
        """Returns the dictionary of outputs from the prediction of the model."""

    def mean(self, outputs: list[dict[str, Tensor]], rest: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns the outputs of an ensemble from the outputs of its models.

        By default, this is the mean of every output. Codecs with outputs that are neither
        probabilities nor predicted values override it.

        Args:
            outputs: List of results of `outputs`.
            rest: Second result of `encode`.
        """
        return {name: mean_of(outputs, name) for name in outputs[0]}

    def named(self, outputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Adds the strings that numeric outputs stand for, such as names of labels.

        It serves the signature with the same inputs as the model. By default, nothing changes.
        """
        return outputs

    @abc.abstractmethod
    def answers(self, outputs: dict[str, Tensor], rest: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns the answers, a dictionary of tensors `[B, ...]`."""

    def checked(self, **inputs: Tensor) -> dict[str, Any]:
        """Returns the inputs after an assertion for each rule that they must follow."""
        return inputs

    def screen(self, **inputs: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns which rows are valid, boolean `[R]`, and inputs without the invalid rows."""
        rows = tf.shape(next(iter(inputs.values())))[0]
        return tf.fill([rows], True), inputs

    # About the tensors

    @abc.abstractmethod
    def input_specs(
        self, rows: int | None = None, length: int | None = None
    ) -> "dict[str, tf.TensorSpec]":
        """Returns a dictionary of the `tf.TensorSpec`s of the model's inputs.

        Args:
            rows: Number of rows. `None`: any.
            length: Length of the rows, if they have one. `None`: any.
        """

    def input_shapes(
        self, rows: int | None = None, length: int | None = None
    ) -> dict[str, tuple[Sequence[int | None], Any]]:
        """Returns the shapes and the NumPy dtypes of `input_specs`, by name."""
        specs = self.input_specs(rows, length)
        return {name: (x.shape.as_list(), x.dtype.as_numpy_dtype) for name, x in specs.items()}

    def further_specs(self, signature: str) -> "dict[str, tf.TensorSpec]":
        """Returns the `tf.TensorSpec`s of one of `further_signatures`; batches have any size."""
        raise NotImplementedError

    def usual_lengths(self) -> list[int] | None:
        """Returns the lengths of rows for which a .tflite file has a signature by default.

        `None`: a few lengths from 16 to `longest`.
        """
        return None

    def lengths(self, inputs: Tensor) -> list[int]:
        """Returns the list of the rows' lengths, or 1 for each row if rows have no length."""
        return [1] * len(next(iter(inputs.values())))

    @abc.abstractmethod
    def guide(self, example: Any) -> Guide:
        """Returns a `Guide`.

        Args:
            example: Example for the request.
        """

    # Metadata of files

    def line_metadata(self) -> dict[str, Any]:
        """Returns the plain values that `of_lines` needs, such as the names of columns."""
        return {}

    def metadata(self) -> dict[str, Any]:
        """Returns the plain values that `from_metadata` and programs in other languages need."""
        return {}

    @classmethod
    def from_metadata(cls: type[Kind], metadata: dict[str, Any], tokenizers: Any) -> Kind:
        """Returns the codec of a file.

        Args:
            metadata: Result of `metadata`.
            tokenizers: The `Tokenizers` of the file, or `None`.
        """
        return cls()

    # Quality of answers

    def quality(self, results: list, references: list[str]) -> dict[str, float]:
        """Returns a dictionary of metrics of answers, for which higher values are better.

        The check of a quantised export limits the loss of each metric.

        Args:
            results: List of `Result`s.
            references: List of the correct answers, strings.
        """
        return {}


def mean_of(outputs, name) -> Tensor:
    """Returns the mean of one output of several models, float32.

    Args:
        outputs: List of dictionaries of tensors.
        name: Name of the output.
    """
    values = [tf.cast(output[name], tf.float32) for output in outputs]
    return tf.add_n(values) / len(values)
