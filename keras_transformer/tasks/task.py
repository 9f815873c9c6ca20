"""The interface of a task, which alone knows the purpose of its models."""

import abc
import dataclasses
import os
import typing
from collections.abc import Sequence
from typing import Any

from keras_transformer.text.lines import read_lines, read_parallel


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric of a validation.

    Args:
        title: Title of its plot.
        higher_is_better: Whether higher values are better.
        of_answers: Whether the metric is computed from the answers to `training.validate_sentences`
            inputs. Otherwise it is one of the metrics compiled into the model.
        answers: Key in `Task.validated` of the pipeline that answers; the beginning of the metric's
            name.
        needs: Option of `[training]` without which it is not measured. `None`: there is none.
        scale: Scale of its axis, `"linear"` or `"log"`.
        drawn: Whether the plot of the learning curves has a panel for it.
    """

    title: str
    higher_is_better: bool
    of_answers: bool = False
    answers: str = ""
    needs: str | None = None
    scale: str = "linear"
    drawn: bool = True


class Survey(typing.NamedTuple):
    """Result of reading the training data once before training.

    Args:
        fields: Fields of the model's configuration that the training data determine.
        sentences: Sentences for the user about the data: labels with their counts, and warnings.
    """

    fields: dict
    sentences: tuple = ()


LOSS = Metric("loss", higher_is_better=False)
PERPLEXITY = Metric("perplexity", higher_is_better=False, scale="log")
TOKEN_ACCURACY = Metric("token accuracy", higher_is_better=True, drawn=False)


class Task(abc.ABC):
    """Purpose of a model: its data, its metrics, its evaluation and its pipeline.

    Settings, the `Session` of `train`, `evaluate`, `predict` and the exports use this interface
    and know no task by name. A class in `training/tasks/` contains the batches and the loss of the
    task's training. Because reading a configuration imports this module, only methods import
    TensorFlow.

    Attributes:
        name: The `kind` in the `[task]` section of a configuration.
        columns: Names of the columns of the data, in order.
        file_columns: Contents of a line of each file that `read_files` reads. Empty: each file
            holds one of the `columns`.
        texts: Columns that a vocabulary is learned from: a dictionary with the key `"source"` for
            the tokenizer of inputs, and `"target"` if outputs are texts with a tokenizer of their
            own. Empty for a task without text.
        sources: Kinds of data that a task supports. Empty: texts.
        needs_mask: Whether a vocabulary needs a mask token; one that is learned then gets it.
        training: Path `"module:Class"` of the task's `Training`, which is imported when training
            begins.
        config_class: Class of the configuration of the task's models, a `ModelConfig`.
        metrics: Dictionary from the names of the validation metrics to `Metric`s, in order.
        unit: Unit over which a loss is averaged: `"tokens"` or `"examples"`.
        evaluation_options: Names of the options of `evaluate` that the task supports.
        has_two_sides: Whether inputs and outputs can have separate vocabularies.
        can_pack: Whether a row of a batch can hold several examples.
        truncates_tokens: Whether token cutoff has an effect: the loss is a cross-entropy of tokens.
        has_frames: Whether the inputs are frames of sound, which the tokens of the output follow in
            order, so that CTC has an effect.
        unused: Sections of a configuration, and keys such as `"training.r_drop"`, that have no
            effect on the task.
        tuning_rate: Peak of the learning rate with which a trained model is trained further, if the
            configuration has none. 5e-5 is the highest of the rates for BERT (Devlin et al., 2019,
            appendix A.3) and the default of most programs for fine-tuning.
        fixed: Dictionary from options of `[training]` to the only value that the task supports.
    """

    name = ""
    columns: tuple[str, ...] = ()
    file_columns: tuple[str, ...] = ()
    sources = ()
    texts = {}
    training = ""
    config_class = None
    metrics = {}
    unit = "tokens"
    evaluation_options = ()
    has_two_sides = can_pack = needs_mask = truncates_tokens = has_frames = False
    unused = ()
    tuning_rate = 5e-5
    fixed = {}

    @abc.abstractmethod
    def pipeline_class(self) -> type[Any]:
        """Returns the class of the pipeline of a trained model.

        The class has an attribute `model_class` and a method `from_run(path, max_length)`.
        """

    def answering_class(self) -> type[Any]:
        """Returns the `Answering` that describes opened exports of the task.

        A base class of the pipeline that needs no TensorFlow makes opening an export fast.
        """
        return self.pipeline_class()

    def survey(self, rows: Any, metadata: dict[str, Any] | None = None) -> Survey:
        """Reads the training data once and returns a `Survey`.

        Args:
            rows: The `tf.data.Dataset` of the training split: tuples of the columns.
            metadata: Dictionary of the fields that the source of the data determines.
        """
        return Survey({})

    def examples(self, columns: Any) -> list[list]:
        """Returns the inputs of a split and their references, for an evaluation.

        Args:
            columns: Dictionary from the names of the `columns` to lists of values.

        Returns:
            A list of inputs and, if there are several columns, a list of the correct outputs.
        """
        inputs, *others = columns.values()
        return [inputs, *others[-1:]]

    def read_files(
        self, source: str | os.PathLike, reference: str | os.PathLike | None = None
    ) -> Sequence[list]:
        """Reads files in which each line is an example, and returns them as `examples` does.

        Args:
            source: Path of the file of inputs.
            reference: Path of the file of correct outputs, one per line, or `None`.

        Raises:
            ValueError: If a line is not UTF-8 or is not an input of the task, or the files differ
                in their number of lines.
        """
        return [read_lines(source)] if reference is None else read_parallel(source, reference)

    def samples(self, inputs: list) -> list:
        """Returns the inputs to check an export with, as they occur in use.

        Args:
            inputs: List of inputs; see `examples`.
        """
        return inputs

    def validation_rows(self, rows: Any, limit: int) -> Any:
        """Returns the examples whose answers a validation measures: the first ones.

        Args:
            rows: The `tf.data.Dataset` of the validation split: tuples of the columns.
            limit: Maximum number of examples.

        Raises:
            ValueError: If the metrics of the task cannot be computed from so few examples.
        """
        return rows.take(limit)

    def validated(self, pipeline: Any, settings: Any) -> dict[str, Any]:
        """Returns the pipelines whose answers a validation measures.

        Args:
            pipeline: A `pipeline_class`.
            settings: The `Settings`.

        Returns:
            Dictionary from beginnings of the names of metrics, `""` for most, to pipelines.
        """
        return {"": pipeline}

    def measure(self, pipeline: Any, inputs: list, references: list) -> dict[str, Any]:
        """Returns the results of the metrics that are `of_answers`, without `Metric.answers`.

        Args:
            pipeline: One of the pipelines of `validated`.
            inputs, references: See `examples`.
        """
        return {}

    def doubt(self, references: list) -> str:
        """Returns a warning, without full stop, if a metric of answers has no meaning for them.

        Args:
            references: See `examples`.

        Returns:
            The warning; an empty string if there is none.
        """
        return ""

    @abc.abstractmethod
    def evaluate(self, pipeline: Any, columns: Any, **options: Any) -> dict[str, Any]:
        """Evaluates a pipeline and returns a dictionary of plain values.

        Args:
            pipeline: A `pipeline_class`.
            columns: Result of `examples` or `read_files`.
            **options: Values of the options in `evaluation_options` that were set.

        Raises:
            ValueError: If there is nothing to evaluate, or an input or a label is not valid.
        """

    def require(self, settings: Any) -> None:  # noqa: B027  (most tasks need no further package)
        """Requires the packages that training needs to compute its metrics.

        Args:
            settings: The `Settings`.

        Raises:
            ValueError: If a package is missing; the error contains the command that installs it.
        """

    def check(self, settings: Any) -> None:  # noqa: B027  (most tasks refuse nothing)
        """Refuses training settings that would have no effect.

        Args:
            settings: The `Settings`.

        Raises:
            ValueError: If there is such a setting; the error is one line.
        """
