"""The interface of a task: the one place that knows what its models are for."""

import abc
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Figure:
    """What a validation measures.

    Args:
        title: What an axis of a picture calls it.
        higher_is_better: Its direction.
        of_texts: Whether it is measured by answering `training.validate_sentences` inputs, and not
            by the metrics that are compiled into the model.
        scale: How an axis is scaled, `"linear"` or `"log"`.
        drawn: Whether the picture of the learning curves has a panel for it.
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


LOSS = Figure("loss", higher_is_better=False)
PERPLEXITY = Figure("perplexity", higher_is_better=False, scale="log")
TOKEN_ACCURACY = Figure("token accuracy", higher_is_better=True, drawn=False)


class Task(abc.ABC):
    """What a model is trained, evaluated, used and exported for.

    Settings, the session of a training, `evaluate`, `predict` and the exports use it, and know no
    task by name. How its data become batches, and the loss of its training, are in the class for it
    in `training/tasks/`; the rest is here. Reading a configuration imports this module, so that
    only methods import TensorFlow.

    Attributes:
        name: The `kind` in a configuration's `[task]`.
        columns: Names of the texts of an example, in the order of the data's columns.
        source_columns, target_columns: Which of them the tokenizer of the inputs encodes, and which
            that of the outputs, as numbers. From these a vocabulary is learned.
        sources: Kinds of data that it can have, of a task that reads no text.
        reads_text: Whether the columns are texts and what belongs to each, and a vocabulary is
            learned from them. If not, examples are arrays of one shape.
        config_class: The class of its models' configuration, a `ModelConfig`.
        figures: What a validation measures, a dictionary from names to `Figure`s, in order.
        unit: What a loss is averaged over: `"tokens"` or `"examples"`.
        evaluation_options: Names of the options of `evaluate` that it takes.
        has_two_sides: Whether inputs and outputs can have vocabularies of their own.
        can_pack: Whether a row of a batch can hold several examples.
        decoding_errors: What becomes of bytes of a file that are not UTF-8, as in `bytes.decode`.
        unused: Sections of a configuration, and keys such as `"training.r_drop"`, that have no
            effect on it.
    """

    name = ""
    columns = ()
    sources = ()
    reads_text = True
    source_columns = target_columns = (0,)
    config_class = None
    figures = {}
    unit = "tokens"
    evaluation_options = ()
    has_two_sides = can_pack = False
    decoding_errors = "strict"
    unused = ()

    @abc.abstractmethod
    def pipeline_class(self):
        """Returns the class of what a trained model is used by: text in, answers out.

        It has `model_class` and `from_run(path, max_length)`.
        """

    def survey(self, rows, facts=None):
        """Reads the training data once and returns a `Survey` of them.

        Args:
            rows: The `tf.data.Dataset` of the training split: tuples of the columns, strings where
                a task reads text.
            facts: Those fields that the source of the data decides, a dictionary.
        """
        return Survey({})

    def fields(self, rows, facts=None):
        """Returns the `fields` of a `survey`."""
        return self.survey(rows, facts).fields

    def samples(self, inputs):
        """Returns what an export is checked with: a list of inputs as they are in use.

        Args:
            inputs: List of strings, the first column of the data.
        """
        return inputs

    def references(self, values):
        """Returns what an evaluation compares with: what belongs to inputs, as users write it.

        Args:
            values: The last column of the data, a list.
        """
        return values

    def measure(self, pipeline, inputs, references):
        """Returns the figures that are `of_texts`.

        Args:
            pipeline: A `pipeline_class`.
            inputs: List of strings, the first column.
            references: List of strings, the last column.
        """
        return {}

    @abc.abstractmethod
    def evaluate(self, pipeline, columns, **options):
        """Returns what an evaluation prints, a dictionary of plain values.

        Args:
            pipeline: A `pipeline_class`.
            columns: For each of `columns` a list of strings, or of arrays.
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
