"""Kinds of `[data]` for texts, and the bases of others."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from keras_transformer.text.lists import ListColumn
from keras_transformer.training.data.batching import BUCKETS
from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.settings.fields import (
    Buckets,
    DataSettings,
    Files,
    PathText,
    Positive,
    sources_for,
)

Weight = Annotated[float, Field(gt=0)]


class TokenData(DataSettings):
    """Base of the kinds of `[data]` for texts."""

    max_length: int = Field(
        100,
        ge=2,
        description="Maximum length of a text in tokens, including its end token. Examples "
        "with a longer text are left out and counted.",
    )
    batch_tokens: Positive = Field(
        2048,
        description="Maximum size of a batch in tokens of source or of target, whichever is "
        "larger, including padding.",
    )

    buckets: Buckets = BUCKETS
    truncate_source: bool = Field(
        False,
        description="Whether to truncate sources to `max_length` instead of leaving out the "
        "example. Targets are never truncated.",
    )

    columns: ClassVar = ("source", "target")

    @property
    def size_of_batch(self) -> int:
        """Size of a batch, in tokens."""
        return self.batch_tokens

    @model_validator(mode="after")
    def _one_sentence_fits(self):
        if self.batch_tokens < self.max_length:
            raise ValueError(
                "`batch_tokens` must be at least `max_length`, so that the longest sentence fits "
                f"into a batch. Received: {self.received('batch_tokens')}, "
                f"{self.received('max_length')}."
            )
        return self


class PairData(TokenData):
    """Base of the kinds of `[data]` whose pairs may be texts in two languages."""

    bidirectional: bool = Field(
        False,
        description="Whether an epoch of training contains every pair a second time, with "
        "source and target exchanged. Both languages must share a vocabulary. Validation and "
        "test do not change. Afterwards, train a run in one direction that starts from this "
        "one, with `model.start_from` (Ding et al., 2021).",
    )


class CldrData(PairData):
    """Phrases generated from Unicode's locale data without a download, as in the demo."""

    source: Literal["cldr"] = Field("cldr", description="The kind of data.")
    source_language: str = Field(
        "en", description="Locale of the source, one that CLDR contains, such as `pt-BR`."
    )
    target_language: str = Field("de", description="Locale of the target.")
    examples: int = Field(
        130_000,
        ge=100,
        description="Number of pairs to generate, including those for validation and test.",
    )
    seed: int = Field(1, ge=0, description="Random seed of the phrases.")
    data_dir: PathText | None = Field(
        None,
        description="Folder of the generated phrases. Default: the folder of TensorFlow Datasets.",
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.data.sources.cldr import open_cldr

        return open_cldr(self)


class NoData(TokenData):
    """No data, for a run that was converted from another project's checkpoint."""

    source: Literal["none"] = Field(description="The kind of data.")
    source_language: str | None = Field(
        None, description="Language of the source, such as `en`: metadata of the model."
    )
    target_language: str | None = Field(
        None, description="Language of the target: metadata of the model."
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.data.sources.none import open_none

        return open_none(self)

    def check_columns(self, task) -> None:
        """Accepts every task: there are no columns."""


class TfdsData(PairData):
    """A dataset of TensorFlow Datasets: a translation dataset, or one with two text features."""

    source: Literal["tfds"] = Field(description="The kind of data.")
    name: str = Field(description="Name of the dataset, such as `wmt14_translate/de-en`.")
    source_language: str | None = Field(
        None, description="For a translation dataset: language of the source, such as `en`."
    )
    target_language: str | None = Field(
        None, description="For a translation dataset: language of the target."
    )
    features: list[str] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="For other datasets: the two text features to use as source and target, "
        'such as `["article", "highlights"]`.',
    )
    data_dir: PathText | None = Field(
        None, description="Folder of the data. Default: the folder of TensorFlow Datasets."
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.data.sources.tfds import open_tfds

        return open_tfds(self)

    @model_validator(mode="after")
    def _languages_or_features(self):
        languages = self.source_language, self.target_language
        if self.features is not None and languages != (None, None):
            raise ValueError(
                "`features` replaces `source_language` and `target_language`: remove it or the "
                "other two."
            )
        if self.features is not None and self.features[0] == self.features[1]:
            raise ValueError(
                f"`features` must name two different features. Received: {self.features}."
            )
        if self.features is None and None in languages:
            raise ValueError(
                "`source_language` and `target_language` must be given, or `features`, the names "
                "of two text features."
            )
        return self


class TextData(PairData):
    """Plain text with one example per line: a file with the columns of the task, separated by tabs.
    Or two files, where line n of one file belongs to line n of the other. Files are UTF-8, and
    compressed with gzip if their name ends in `.gz`. A line ends at a line feed. Carriage returns
    before the line feed are removed; all others are text. Paths are relative to the configuration
    file; `~` and `${VARIABLES}` are replaced.
    """

    source: Literal["text"] = Field(description="The kind of data.")
    train_source: Files | None = Field(
        None, description="Training texts: files with the first of two columns."
    )
    train_target: Files | None = Field(
        None,
        description="Files with the second column, such as translations, one for each file of "
        "`train_source`.",
    )
    train: Files | None = Field(
        None,
        description="Instead of the two keys above: files with all columns of an example on each "
        "line, separated by tabs. Quotation marks are ordinary text.",
    )
    train_weights: list[Weight] | None = Field(
        None,
        description="For each file (or pair of files), how often an epoch contains each of its "
        "examples on average. 0.25: every fourth example, with different ones in the next "
        "epoch. 2: every example twice. The vocabulary is learned from all files, unweighted. "
        "Default: 1 for each.",
    )
    train_distributions: PathText | None = Field(
        None,
        description="Folder with the predictions of teachers for the targets of all training "
        "pairs, which `distill --word-level` writes.",
    )
    validation_source: PathText | None = Field(
        None, description="Validation texts: a file with the first of two columns."
    )
    validation_target: PathText | None = Field(
        None, description="File with the second column of `validation_source`."
    )
    validation: PathText | None = Field(
        None, description="Instead of the two keys above: a file with all columns, like `train`."
    )
    test_source: PathText | None = Field(
        None, description="Test texts for `evaluate`: a file with the first of two columns."
    )
    test_target: PathText | None = Field(
        None, description="File with the second column of `test_source`."
    )
    test: PathText | None = Field(
        None,
        description="Instead of the two keys above: a file with all columns, like `train`. A test "
        "split is optional.",
    )
    tsv_columns: list[Positive] | None = Field(
        None,
        min_length=1,
        description="Numbers of the task's columns in files with tabs, counted from 1. Needed "
        "if the files also have other columns.",
    )
    label_separator: str | None = Field(
        None,
        min_length=1,
        description="For classification with several labels: string between the labels of a "
        "text, in these files and later in answers. Files whose names end in `.jsonl` or "
        "`.jsonl.gz` do not need it: each line is a JSON object with the columns as keys, and "
        "the labels are a list of strings. Default: a comma.",
    )
    packed: bool = Field(
        False,
        description="For language models, whether to pack several texts into each row of up to "
        "`max_length` tokens, without attention between them; a longer text is cut into parts.",
    )
    source_language: str | None = Field(
        None, description="Language of the source, such as `en`: metadata of the model."
    )
    target_language: str | None = Field(
        None, description="Language of the target: metadata of the model."
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.data.sources.text import open_text

        return open_text(self, columns)

    def check_columns(self, task) -> None:  # noqa: D102
        if not task.texts:
            raise ValueError(
                f'`data.source = "text"` reads texts: {task.name} needs '
                f"{' and '.join(task.columns)}, {sources_for(task)}."
            )
        names, count = " and ".join(task.columns), len(task.columns)
        if self.tsv_columns is not None and len(self.tsv_columns) != count:
            raise ValueError(
                f"`data.tsv_columns` must have {count} number{'s' * (count > 1)}, for {names}. "
                f"Received: {self.tsv_columns}."
            )
        for split in ("train", "validation", "test"):
            if count != 2 and getattr(self, f"{split}_source") is not None:
                raise ValueError(
                    f"`data.{split}_source` and `data.{split}_target` need a task with two "
                    f"columns: for {task.name}, with {names}, set `data.{split}` instead."
                )
        if self.source_language is not None and not task.has_two_sides:
            raise ValueError(
                f"`data.source_language` and `data.target_language` have no effect on {task.name}."
            )

        has_lists = any(isinstance(name, ListColumn) for name in task.columns)
        if self.label_separator is not None and not has_lists:
            raise ValueError(f"`data.label_separator` has no effect on {task.name}.")
        if self.label_separator is not None and {"\t", "\n", "\r"} & {*self.label_separator}:
            raise ValueError(
                "`data.label_separator` must not contain tabs or line ends. "
                f"Received: {self.label_separator!r}."
            )

        if self.train_distributions is not None and not task.has_two_sides:
            raise ValueError(f"`data.train_distributions` has no effect on {task.name}.")

    @model_validator(mode="after")
    def _every_split_has_its_files(self):
        for split in ("train", "validation", "test"):
            both, source, target = (
                getattr(self, split + side) for side in ("", "_source", "_target")
            )
            if (source is None) != (target is None):
                raise ValueError(
                    f"`{split}_source` and `{split}_target` must be given together, for a task "
                    f"with two columns. For any task, `{split}` is a file with all columns."
                )
            if both and source:
                raise ValueError(
                    f"`{split}` replaces `{split}_source` and `{split}_target`: remove it or the "
                    "other two."
                )
            if not (both or source or split == "test"):
                raise ValueError(
                    f"`{split}` is missing: set it to a file with all columns, separated by tabs, "
                    f"or set `{split}_source` and `{split}_target`, a file for each of two columns."
                )
        return self

    @model_validator(mode="after")
    def _lists_fit_each_other(self):
        source, target = self.train_source or [], self.train_target or []
        if len(source) != len(target):
            raise ValueError(
                "`train_source` and `train_target` must name the same number of files. "
                f"Received: {len(source)} and {len(target)}."
            )
        corpora = len(self.train or source)
        if self.train_weights is not None and len(self.train_weights) != corpora:
            raise ValueError(
                "`train_weights` must contain a number for each file of `train` or `train_source`. "
                f"Received: {len(self.train_weights)} numbers for {corpora} files."
            )
        if self.tsv_columns is not None and not (self.train or self.validation or self.test):
            raise ValueError("`tsv_columns` has no effect without a file with tabs.")
        if (self.source_language is None) != (self.target_language is None):
            raise ValueError("`source_language` and `target_language` must be given together.")
        return self


class ArrayData(DataSettings):
    """Base of the kinds of `[data]` for arrays."""

    batch_size: Positive = Field(64, description="Number of examples in a batch.")

    @property
    def size_of_batch(self) -> int:
        """Size of a batch, in examples."""
        return self.batch_size
