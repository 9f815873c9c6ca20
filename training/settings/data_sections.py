"""The section `[data]` in its kinds: those of texts, and a table of all."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from keras_transformer.training.settings.fields import (
    DataSettings,
    Files,
    PathText,
    Positive,
    sources_for,
)

Weight = Annotated[float, Field(gt=0)]


class TokenData(DataSettings):
    """What the kinds of `[data]` that are texts have in common."""

    max_length: int = Field(
        100,
        ge=2,
        description="Longest text of a training example, in tokens with its end; longer examples "
        "are left out and counted.",
    )
    batch_tokens: Positive = Field(
        2048,
        description="Size of a batch in tokens, padding included: of source or target, the larger.",
    )

    cut_source: bool = Field(
        False,
        description="Whether a source that is longer than `max_length` is cut there, and the "
        "example kept. Targets are never cut.",
    )

    columns: ClassVar = ("source", "target")

    @property
    def size_of_batch(self):
        """How much a batch holds."""
        return self.batch_tokens

    @model_validator(mode="after")
    def _one_sentence_fits(self):
        if self.batch_tokens < self.max_length:
            raise ValueError(
                "`batch_tokens` must be at least `max_length`, or a long sentence would fit into "
                f"no batch. Received: {self.received('batch_tokens')}, "
                f"{self.received('max_length')}."
            )
        return self


class CldrData(TokenData):
    """Phrases generated from Unicode's locale data, with nothing to download: the demo's."""

    source: Literal["cldr"] = Field("cldr", description="The kind of data.")
    source_language: str = Field("en", description="A locale that CLDR knows, such as `pt-BR`.")
    target_language: str = Field("de", description="The locale of the translations.")
    examples: int = Field(130_000, ge=100, description="Pairs to generate, held-out ones included.")
    seed: int = Field(1, ge=0, description="Decides which phrases are generated.")
    data_dir: PathText | None = Field(
        None, description="Folder that keeps them. Default: where TensorFlow Datasets keeps data."
    )


class TextData(TokenData):
    """Plain text, one example per line: a file with the task's columns, separated by tabs.

    Or two files, of which line n of one belongs to line n of the other. Files are UTF-8, and gzip
    where their name ends in `.gz`. A line ends at a line feed, before which carriage returns are
    not part of it; elsewhere they are text. Paths are relative to the configuration file; `~` and
    `${VARIABLES}` are replaced.
    """

    source: Literal["text"] = Field(description="The kind of data.")
    train_source: Files | None = Field(
        None, description="Texts to train on, the first column of two."
    )
    train_target: Files | None = Field(
        None,
        description="What belongs to them, such as translations, in as many files as "
        "`train_source`.",
    )
    train: Files | None = Field(
        None,
        description="Instead of both: files with all columns of an example on every line, with "
        "tabs between them. Quotes are text like any other.",
    )
    train_weights: list[Weight] | None = Field(
        None,
        description="For each of several files (or pairs of files), how often an epoch holds each "
        "of its examples on average: 0.25 is every fourth, others in the next epoch; 2 is "
        "each of them twice. The vocabulary is learned from all of them once. Default: 1 for each.",
    )
    validation_source: PathText | None = Field(None, description="Texts to validate with.")
    validation_target: PathText | None = Field(None, description="What belongs to them.")
    validation: PathText | None = Field(None, description="Instead of both: one file, as `train`.")
    test_source: PathText | None = Field(None, description="Texts for `evaluate`; may be left out.")
    test_target: PathText | None = Field(None, description="What belongs to them.")
    test: PathText | None = Field(None, description="Instead of both: one file, as `train`.")
    tsv_columns: list[Positive] | None = Field(
        None,
        min_length=1,
        description="Places of the task's columns in files with tabs, counted from 1. Needed "
        "where there are others.",
    )
    packed: bool = Field(
        False,
        description="For language models, whether rows of up to `max_length` tokens hold several "
        "texts, of which none sees another; a longer text is cut into pieces.",
    )
    source_language: str | None = Field(
        None, description="Language of the source, such as `en`: a fact about the model."
    )
    target_language: str | None = Field(None, description="Language of the target.")

    def check_columns(self, task):  # noqa: D102
        if not task.texts:
            raise ValueError(
                f'`data.source = "text"` has texts: {task.name} needs '
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
                    f"`data.{split}_source` and `data.{split}_target` need a task of two columns: "
                    f"for {task.name}, with {names}, name a file with `data.{split}`."
                )
        if self.source_language is not None and not task.has_two_sides:
            raise ValueError(
                f"`data.source_language` and `data.target_language` have no effect on {task.name}."
            )

    @model_validator(mode="after")
    def _every_split_has_its_files(self):
        for split in ("train", "validation", "test"):
            both, source, target = (
                getattr(self, split + side) for side in ("", "_source", "_target")
            )
            if (source is None) != (target is None):
                raise ValueError(f"`{split}_source` and `{split}_target` must be given together.")
            if both and source:
                raise ValueError(
                    f"`{split}` stands for `{split}_source` and `{split}_target`; remove it or "
                    "these two."
                )
            if not (both or source or split == "test"):
                raise ValueError(
                    f"`{split}` is missing, a file with all columns and tabs between them; or "
                    f"`{split}_source` and `{split}_target`, a file for each of two columns."
                )
        return self

    @model_validator(mode="after")
    def _lists_fit_each_other(self):
        source, target = self.train_source or [], self.train_target or []
        if len(source) != len(target):
            raise ValueError(
                "`train_source` and `train_target` must name as many files. "
                f"Received: {len(source)} and {len(target)}."
            )
        corpora = len(self.train or source)
        if self.train_weights is not None and len(self.train_weights) != corpora:
            raise ValueError(
                "`train_weights` must hold a number for each file of `train` or `train_source`. "
                f"Received: {len(self.train_weights)} for {corpora}."
            )
        if self.tsv_columns is not None and not (self.train or self.validation or self.test):
            raise ValueError("`tsv_columns` has no effect without a file with tabs.")
        if (self.source_language is None) != (self.target_language is None):
            raise ValueError("`source_language` and `target_language` must be given together.")
        return self


class NoData(TokenData):
    """No data: those of a run that was converted from another project's checkpoint."""

    source: Literal["none"] = Field(description="The kind of data.")
    source_language: str | None = Field(
        None, description="Language of the source, such as `en`: a fact about the model."
    )
    target_language: str | None = Field(None, description="Language of the target.")

    def check_columns(self, task):
        """Accepts every task: there are no columns."""


class ReportsData(TokenData):
    """Short reports on orders and their summaries, generated with nothing to download."""

    source: Literal["reports"] = Field(description="The kind of data.")
    examples: int = Field(40_000, ge=100, description="Pairs to generate, held-out ones included.")
    seed: int = Field(1, ge=0, description="Decides which reports are generated.")
    data_dir: PathText | None = Field(
        None, description="Folder that keeps them. Default: where TensorFlow Datasets keeps data."
    )


class TfdsData(TokenData):
    """A dataset of TensorFlow Datasets, by its name: of translations, or with two texts."""

    source: Literal["tfds"] = Field(description="The kind of data.")
    name: str = Field(description="Name of the dataset, such as `wmt14_translate/de-en`.")
    source_language: str | None = Field(
        None, description="Of a translation dataset one of its languages, such as `en`."
    )
    target_language: str | None = Field(
        None, description="The language of the translations, another of them."
    )
    features: list[str] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="Instead of languages: the features that are source and target, both texts, "
        'such as `["article", "highlights"]`.',
    )
    data_dir: PathText | None = Field(
        None, description="Folder of the data. Default: where TensorFlow Datasets keeps data."
    )

    @model_validator(mode="after")
    def _languages_or_features(self):
        languages = self.source_language, self.target_language
        if self.features is not None and languages != (None, None):
            raise ValueError(
                "`features` stands for `source_language` and `target_language`; remove it or them."
            )
        if self.features is not None and self.features[0] == self.features[1]:
            raise ValueError(f"`features` must name two different ones. Received: {self.features}.")
        if self.features is None and None in languages:
            raise ValueError(
                "`source_language` and `target_language` must be given, or `features`, the names "
                "of two texts."
            )
        return self
