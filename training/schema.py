"""What a training configuration may say: its sections, keys, types, ranges and defaults.

Every section is frozen and strict: a key that is not listed here, a string where a number belongs
or a number out of range is an error, never a guess. Reading and writing is `settings.py`'s.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from keras_transformer.config import PRESETS, TransformerConfig

Positive = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(ge=0, lt=1)]


class Section(BaseModel):
    """One table of the configuration file."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=()
    )


class ModelSettings(Section):
    """`[model]`: a preset of `TransformerConfig` and the fields that differ from it.

    The sizes and special ids of the vocabulary are not set here: they come from the tokenizer.
    `start_from` is a finished run whose weights the training begins with. Its vocabulary is taken
    over, and, unless `preset` is given, so are those fields of `[model]` that are not.
    """

    start_from: str | None = None
    preset: str = "tiny"
    num_layers: int | None = None
    num_decoder_layers: int | None = None
    d_model: int | None = None
    d_ff: int | None = None
    num_heads: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    dropout: float | None = None
    attention_dropout: float | None = None
    activation_dropout: float | None = None
    activation: Literal["relu", "gelu", "silu"] | None = None
    norm: str | None = None
    position: str | None = None
    max_length: int | None = None
    tie: str | None = None
    attention_bias: bool | None = None
    layer_norm_epsilon: float | None = Field(None, gt=0)

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, name):
        if name not in PRESETS:
            raise ValueError(f"must be one of {', '.join(PRESETS)}")
        return name

    @model_validator(mode="after")
    def _consistent(self):
        self.config()  # the ranges and the rules between fields are TransformerConfig's
        return self

    def config(self, **vocabulary):
        """Returns the `TransformerConfig`; `vocabulary` gives its size and special ids."""
        changes = self.model_dump(exclude={"preset", "start_from"}, exclude_none=True)
        return TransformerConfig.preset(self.preset, **changes, **vocabulary)


class DataSettings(Section):
    """What the three kinds of `[data]` have in common.

    `max_length` is in tokens: training pairs with a longer side are left out and counted.
    `batch_tokens` is the size of a batch: source or target tokens, the larger, padding included.
    """

    may_change: ClassVar = ("data_dir",)  # in a run that goes on

    max_length: int = Field(100, ge=2)
    batch_tokens: Positive = 2048

    @model_validator(mode="after")
    def _one_sentence_fits(self):
        if self.batch_tokens < self.max_length:
            raise ValueError(
                "`batch_tokens` must be at least `max_length`, or a long sentence would fit into "
                f"no batch. Received: batch_tokens={self.batch_tokens}, "
                f"max_length={self.max_length}."
            )
        return self


class CldrData(DataSettings):
    """`source = "cldr"`: phrases generated from Unicode's locale data, nothing to download.

    They are kept in `data_dir`, or else where TensorFlow Datasets keeps its data.
    """

    source: Literal["cldr"] = "cldr"
    source_language: str = "en"
    target_language: str = "de"
    examples: int = Field(130_000, ge=100)
    seed: int = Field(1, ge=0)
    data_dir: str | None = None


class TextData(DataSettings):
    """`source = "text"`: plain text, one sentence per line, line n translates line n.

    Paths are relative to the configuration file; `~` and `${VARIABLES}` are replaced.
    """

    source: Literal["text"]
    train_source: str
    train_target: str
    validation_source: str
    validation_target: str
    test_source: str | None = None
    test_target: str | None = None

    @model_validator(mode="after")
    def _test_pair(self):
        if (self.test_source is None) != (self.test_target is None):
            raise ValueError("`test_source` and `test_target` must be given together.")
        return self


class TfdsData(DataSettings):
    """`source = "tfds"`: a translation dataset of TensorFlow Datasets, by its name."""

    source: Literal["tfds"]
    name: str
    source_language: str
    target_language: str
    data_dir: str | None = None


class VocabularySettings(Section):
    """`[vocabulary]`: one SentencePiece vocabulary for both languages (section 5.1)."""

    size: int = Field(4000, ge=8)
    model_type: Literal["bpe", "unigram"] = "bpe"
    split_digits: bool = True
    character_coverage: float = Field(1.0, gt=0, le=1)


class OptimizerSettings(Section):
    """`[optimizer]`: Adam with the paper's constants (section 5.3).

    With `ema_momentum`, validation and the final model use a moving average of the weights.
    """

    beta_1: Rate = 0.9
    beta_2: Rate = 0.98
    epsilon: float = Field(1e-9, gt=0)
    clip_norm: float | None = Field(None, gt=0)
    ema_momentum: float | None = Field(None, gt=0, lt=1)


class ScheduleSettings(Section):
    """`[schedule]`: the learning rate.

    `"inverse_sqrt"` is Eq. 3, times `scale`, or scaled so that its highest value is `peak`.
    `"linear"` rises to `peak` and falls to zero at the last update.
    """

    kind: Literal["inverse_sqrt", "linear"] = "inverse_sqrt"
    warmup_steps: Positive = 4000
    scale: float | None = Field(None, gt=0)
    peak: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _one_height(self):
        if self.kind == "linear" and self.peak is None:
            raise ValueError('`kind = "linear"` needs `peak`, the highest learning rate.')
        if self.scale is not None and (self.kind == "linear" or self.peak is not None):
            raise ValueError(
                '`scale` belongs to `kind = "inverse_sqrt"` without `peak`; remove one of them.'
            )
        return self


class TrainingSettings(Section):
    """`[training]`: length, loss, arithmetic, and how often to look and to save.

    Everything called `_every` is in optimizer updates. `accumulate` is how many batches make an
    update: the update of all their sentences in one batch, with the memory of one. Above 0,
    `subword_sampling` is the rate of BPE dropout, or the exponent for a unigram vocabulary.
    Above 0, `r_drop` is the weight of R-Drop's loss (5 in its paper), which makes two passes of
    every batch agree: an update takes twice as long, and learns more from little data.
    `best_by` keeps the checkpoint of the best validation; after `patience` validations that were no
    better, the training stops. The paper's `final_model` is the last.
    """

    # In a run that goes on. The others, here and in other sections, decided what it has learned.
    may_change: ClassVar = (
        "updates", "validate_every", "validate_sentences", "checkpoint_every", "keep_checkpoints",
        "best_by", "patience", "final_model", "log_every", "progress_seconds", "jit_compile",
    )  # fmt: skip

    updates: Positive = 100_000
    accumulate: Positive = 1
    subword_sampling: Rate = 0.0
    r_drop: float = Field(0.0, ge=0)
    label_smoothing: Rate = 0.1
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    jit_compile: bool = False
    seed: int = Field(1, ge=0, lt=2**31)
    validate_every: Positive = 1000
    validate_sentences: int = Field(200, ge=0)
    checkpoint_every: Positive = 1000
    keep_checkpoints: Positive = 3
    best_by: Literal["perplexity", "bleu"] | None = None
    patience: Positive | None = None
    final_model: Literal["last", "best"] = "last"
    log_every: Positive = 50
    progress_seconds: float = Field(10.0, gt=0)

    @model_validator(mode="after")
    def _best_is_defined(self):
        if self.best_by is None and (self.patience is not None or self.final_model == "best"):
            key = "patience" if self.patience is not None else 'final_model = "best"'
            raise ValueError(f'`{key}` needs `best_by`, which is "perplexity" or "bleu".')
        if self.best_by == "bleu" and not self.validate_sentences:
            raise ValueError('`best_by = "bleu"` needs `validate_sentences` to translate.')
        return self


def _data_kind(value):
    """Names the class of `[data]`; pydantic calls it with a table or with an instance."""
    if isinstance(value, dict):
        return value.get("source", "cldr")
    return getattr(value, "source", "cldr")


class Settings(Section):
    """A whole configuration."""

    model: ModelSettings = ModelSettings()
    data: Annotated[
        Annotated[CldrData, Tag("cldr")]
        | Annotated[TextData, Tag("text")]
        | Annotated[TfdsData, Tag("tfds")],
        Discriminator(_data_kind),
    ] = CldrData()
    vocabulary: VocabularySettings = VocabularySettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    training: TrainingSettings = TrainingSettings()

    @model_validator(mode="after")
    def _rules_between_sections(self):
        limit = self.model.config().max_length
        if self.data.max_length > limit:
            raise ValueError(
                "`data.max_length` must not exceed `model.max_length`. "
                f"Received: data.max_length={self.data.max_length}, model.max_length={limit}."
            )
        if self.schedule.kind == "linear" and self.schedule.warmup_steps >= self.training.updates:
            raise ValueError(
                "`schedule.warmup_steps` must be below `training.updates` for a linear schedule. "
                f"Received: schedule.warmup_steps={self.schedule.warmup_steps}, "
                f"training.updates={self.training.updates}."
            )
        return self


DATA_KINDS = {"cldr": CldrData, "text": TextData, "tfds": TfdsData}
