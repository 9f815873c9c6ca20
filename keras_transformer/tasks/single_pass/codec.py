"""The interface of what stands before and after a model that answers in one pass.

A `Codec` is all of such a task but its model: requests become tensors of the model, and its outputs
become answers. A program, a SavedModel and a .tflite file share it:

    request -> encode -> inputs -> model -> outputs -> answers -> results
"""

import abc
import dataclasses

import tensorflow as tf


class Result(abc.ABC):
    """One answer, and the numbers that it was chosen by.

    Attributes:
        truncated: Whether the input was longer than the model's limit and was cut.
    """

    @property
    @abc.abstractmethod
    def text(self):
        """The answer as a string: what `predict` writes."""

    @property
    @abc.abstractmethod
    def score(self):
        """Confidence of the model: the natural logarithm of a probability."""

    @property
    @abc.abstractmethod
    def numbers(self):
        """An array of what the model computed for this example; two that agree have one shape."""

    @abc.abstractmethod
    def score_of(self, other):
        """Returns the score that these numbers give to the answer of another result."""


class Choice(Result):
    """A `Result` that is chosen among a few: numbers that are nearly equal may give either."""

    @abc.abstractmethod
    def is_tied(self, other, tolerance):
        """Returns whether numbers that are off by `tolerance` might give the answer of another."""


@dataclasses.dataclass(frozen=True)
class Guide:
    """Information about a task for the README beside a SavedModel.

    Args:
        purpose: What the model does, the beginning of a sentence.
        request: Dictionary from the tensors of a request to JSON of an example, a batch of one.
        axes: Dictionary from outputs and inputs to the letters of their axes, such as `"B, C"`;
            those that are not there have `"B"`.
        notes: List of what the letters and the outputs mean: sentences in Markdown.
        modules: Modules that a Python program must import, and why: a dictionary.
        arguments: Dictionary from the tensors of a request to Python of the same example, where it
            is not the JSON.
    """

    purpose: str
    request: dict
    axes: dict
    notes: list
    modules: dict = dataclasses.field(default_factory=dict)
    arguments: dict = dataclasses.field(default_factory=dict)


class Codec(abc.ABC):
    """Converts requests to the inputs of a model, and its outputs to answers.

    Tensors go by their names, in dictionaries: those of a request `[B, ...]`; the inputs of the
    model and its outputs `[R, ...]`, where R is B unless an example has several rows; the rest,
    which is what else `answers` needs; and the answers `[B, ...]`, one of which is the pipeline's
    `output`.

    Attributes:
        verb: What the signatures of a .tflite file are called.
        example, number: What an input and what one of the numbers is called, for messages.
        tolerance: How far the numbers of two runtimes may differ in float32.
        max_score_loss: How far a quantised model's scores may be off on average, by quantisation.
        blank: Whether an empty line of text has an empty answer.
        signature: Name of the SavedModel's signature that takes the inputs. `None`: there is none.
        longest: Longest row of the inputs, such as tokens. `None`: rows have no length.
        request_specs: The tensors of a request, a dictionary of `tf.TensorSpec`s.
        rule: What a right row of the inputs is and what a wrong one gives, a sentence for a file.
        nothing: What each output is in a wrong row, a dictionary of numbers.
        own_metadata: Names of those of its `metadata` that models which answer together need not
            share, such as `"scale"`, or `"table.filled"` for a field of a dictionary.
        padding: What each input is padded with after its length, a dictionary of numbers.
    """

    verb, example, number = "answer", "example", "number"
    # Runtimes add in different orders. Seen: differences of probabilities of up to 1e-6.
    tolerance = 1e-4
    # Nats, where a score is a log-probability.
    max_score_loss = {"none": 0.0, "float16": 0.01, "int8": 0.1}
    blank = True
    signature = longest = None
    own_metadata = ()
    request_specs = {}
    rule = ""
    nothing = padding = {}

    # Without a state: what a SavedModel is used by that keeps no metadata

    @classmethod
    def of_lines(cls, metadata):
        """Returns what answers lines with a SavedModel: here the class, which needs nothing more.

        Args:
            metadata: What `line_metadata` returned.

        Raises:
            KeyError: If something is missing.
        """
        return cls

    @classmethod
    @abc.abstractmethod
    def check(cls, examples):
        """Returns examples as a list.

        Raises:
            TypeError: If they are something else.
        """

    @classmethod
    def check_samples(cls, examples):
        """Returns the examples to check an export with, as a list.

        Raises:
            TypeError: If they are something else.
            ValueError: If there is nothing to check with.
        """
        examples = cls.check(examples)
        if not examples:
            raise ValueError(f"There must be at least one {cls.example} to check an export with.")
        return examples

    @classmethod
    def parse(cls, line):
        """Returns the example that a line of text is.

        Raises:
            ValueError: If it is none: what a line must be, as the end of a sentence.
        """
        return line

    @classmethod
    def verify(cls, example):
        """Returns an example as it is, if what it names, such as the file of an image, can be read.

        Raises:
            ValueError: If it cannot be read. One line that names it.
        """
        return example

    @staticmethod
    def size(example):
        """Returns a number; examples of similar size go into one batch."""
        return len(example)

    @staticmethod
    def shown(example):
        """Returns an example as a report shows it."""
        return example

    @classmethod
    @abc.abstractmethod
    def request(cls, examples):
        """Returns the request for a list of examples: a dictionary of tensors."""

    @classmethod
    @abc.abstractmethod
    def results(cls, answers):
        """Returns a `Result` of each example.

        Args:
            answers: Dictionary of arrays: what `answers` returns.
        """

    # In a graph

    @abc.abstractmethod
    def encode(self, **request):
        """Returns the inputs of the model and the rest, two dictionaries of tensors."""

    @abc.abstractmethod
    def outputs(self, prediction):
        """Returns the outputs, a dictionary, from what the model returns."""

    def mean(self, outputs, rest):
        """Returns outputs from those of several models, whose answers are then their mean.

        Here the mean of every output; where an output is no probability and no predicted value, a
        codec has its own way.

        Args:
            outputs: List of what `outputs` returned.
            rest: What `encode` returned beside the inputs.
        """
        return {name: mean_of(outputs, name) for name in outputs[0]}

    def named(self, outputs):
        """Returns the outputs as the signature of the inputs does: with names for numbers."""
        return outputs

    @abc.abstractmethod
    def answers(self, outputs, rest):
        """Returns the answers, a dictionary of tensors `[B, ...]`."""

    def checked(self, **inputs):
        """Returns the inputs, after an assertion for each rule that they must follow."""
        return inputs

    def screen(self, **inputs):
        """Returns which rows are right, boolean `[R]`, and inputs with others in wrong places."""
        rows = tf.shape(next(iter(inputs.values())))[0]
        return tf.fill([rows], True), inputs

    # About the tensors

    @abc.abstractmethod
    def input_specs(self, rows=None, length=None):
        """Returns the inputs of the model, a dictionary of `tf.TensorSpec`s.

        Args:
            rows: Number of rows. `None`: any.
            length: Their length, with `longest`. `None`: any.
        """

    def lengths(self, inputs):
        """Returns the length of each row, a list, with `longest`; 1 for each without."""
        return [1] * len(next(iter(inputs.values())))

    @abc.abstractmethod
    def guide(self, example):
        """Returns a `Guide`.

        Args:
            example: An example for its request.
        """

    # What a file keeps

    def line_metadata(self):
        """Returns what `of_lines` needs, such as the names of columns: plain values."""
        return {}

    def metadata(self):
        """Returns what `from_metadata` needs, and a program in another language: plain values."""
        return {}

    @classmethod
    def from_metadata(cls, metadata, tokenizers):
        """Returns the codec of a file.

        Args:
            metadata: Dictionary with what `metadata` returned.
            tokenizers: The `Tokenizers` of the file, or `None`.
        """
        return cls()

    # How good answers are

    def quality(self, results, references):
        """Returns figures of answers, a dictionary; higher is better, and none loses more than a
        limit in a quantised export.

        Args:
            results: List of `Result`s.
            references: List of strings, what the answers should be.
        """
        return {}


def mean_of(outputs, name):
    """Returns the mean of one output of several models, float32.

    Args:
        outputs: List of dictionaries of tensors.
        name: The name of the output.
    """
    values = [tf.cast(output[name], tf.float32) for output in outputs]
    return tf.add_n(values) / len(values)
