"""The interface of a task: the one place that knows what its models are for."""

import abc
import dataclasses
import typing

from keras_transformer.text.lines import read_lines, read_parallel


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric of a validation.

    Args:
        title: Title of its plot.
        higher_is_better: Its direction.
        of_texts: Whether it is measured by answering `training.validate_sentences` inputs, and not
            by the metrics that are compiled into the model.
        scale: How an axis is scaled, `"linear"` or `"log"`.
        drawn: Whether the plot of the learning curves has a panel for it.
    """

    title: str
    higher_is_better: bool
    of_texts: bool = False
    scale: str = "linear"
    drawn: bool = True


class Survey(typing.NamedTuple):
    """The result of a first look at the training data, before a training begins.

    Args:
        fields: Those fields of the model's configuration that the training data decide.
        sentences: What people should know of them: labels and their counts, what looks wrong.
    """

    fields: dict
    sentences: tuple = ()


LOSS = Metric("loss", higher_is_better=False)
PERPLEXITY = Metric("perplexity", higher_is_better=False, scale="log")
TOKEN_ACCURACY = Metric("token accuracy", higher_is_better=True, drawn=False)


class Task(abc.ABC):
    """Purpose of a model: its data, its metrics, its evaluation and its pipeline.

    Settings, the session of a training, `evaluate`, `predict` and the exports use it, and know no
    task by name. How its data become batches, and the loss of its training, are in the class for it
    in `training/tasks/`; the rest is here. Reading a configuration imports this module, so that
    only methods import TensorFlow.

    Attributes:
        name: The `kind` in a configuration's `[task]`.
        columns: Names of the columns of its data, in their order.
        file_columns: What a line of each of the files that `read_files` reads holds. Empty:
            one of the `columns`.
        texts: Names of those columns that a vocabulary is learned from: a dictionary of `"source"`,
            which the tokenizer of the inputs encodes, and of `"target"` where outputs are texts
            with a tokenizer of their own. Empty for a task without text.
        sources: Kinds of data that it can have, of a task without text.
        training: Where the class of its training is, `"module:Class"`, a `Training`. It is imported
            when a training begins.
        config_class: The class of its models' configuration, a `ModelConfig`.
        metrics: Metrics of a validation, a dictionary from names to `Metric`s, in order.
        unit: What a loss is averaged over: `"tokens"` or `"examples"`.
        evaluation_options: Names of the options of `evaluate` that it takes.
        has_two_sides: Whether inputs and outputs can have vocabularies of their own.
        can_pack: Whether a row of a batch can hold several examples.
        unused: Sections of a configuration, and keys such as `"training.r_drop"`, that have no
            effect on it.
    """

    name = ""
    columns = file_columns = ()
    sources = ()
    texts = {}
    training = ""
    config_class = None
    metrics = {}
    unit = "tokens"
    evaluation_options = ()
    has_two_sides = can_pack = False
    unused = ()

    @abc.abstractmethod
    def pipeline_class(self):
        """Returns the class of what a trained model is used by: text in, answers out.

        It has `model_class` and `from_run(path, max_length)`.
        """

    def survey(self, rows, facts=None):
        """Reads the training data once and returns a `Survey` of them.

        Args:
            rows: The `tf.data.Dataset` of the training split: tuples of the columns.
            facts: Those fields that the source of the data decides, a dictionary.
        """
        return Survey({})

    def examples(self, columns):
        """Returns what an evaluation takes of the columns of a split.

        Args:
            columns: Dictionary from the names of the `columns` to lists of values.

        Returns:
            A list of the inputs of examples; and, with several columns, a list of what belongs to
            each of them.
        """
        inputs, *others = columns.values()
        return [inputs, *others[-1:]]

    def read_files(self, source, reference=None):
        """Returns what `examples` returns, of files in which each line is an example.

        Args:
            source: Path of the file of inputs.
            reference: Path of the file of what belongs to them, line by line, or `None`.

        Raises:
            ValueError: If a line is not UTF-8 or is not an input of the task, or the files differ
                in their number of lines.
        """
        return [read_lines(source)] if reference is None else read_parallel(source, reference)

    def samples(self, inputs):
        """Returns what an export is checked with: a list of inputs as they are in use.

        Args:
            inputs: List of inputs: see `examples`.
        """
        return inputs

    def measure(self, pipeline, inputs, references):
        """Returns the metrics that are `of_texts`.

        Args:
            pipeline: A `pipeline_class`.
            inputs, references: See `examples`.
        """
        return {}

    @abc.abstractmethod
    def evaluate(self, pipeline, columns, **options):
        """Returns what an evaluation prints, a dictionary of plain values.

        Args:
            pipeline: A `pipeline_class`.
            columns: What `examples` or `read_files` returned.
            **options: Those of `evaluation_options` that are given.

        Raises:
            ValueError: If there is nothing to evaluate, or a text is not one the task knows.
        """

    def require(self, settings):  # noqa: B027  (most tasks need nothing more)
        """Raises unless what a training measures itself with is installed.

        Args:
            settings: The `Settings`.

        Raises:
            ValueError: With the package, and how to install it.
        """

    def check(self, settings):  # noqa: B027  (most tasks refuse nothing)
        """Refuses settings of a training that would have no effect, by `ValueError`s of one line.

        Args:
            settings: The `Settings`.
        """
