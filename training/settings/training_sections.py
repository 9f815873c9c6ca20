"""The sections of a training: `[vocabulary]`, `[optimizer]`, `[schedule]` and `[training]`."""

from typing import ClassVar, Literal

from pydantic import Field, create_model, field_validator, model_validator

from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.fields import FROM_DATA, Files, Positive, Rate, Section


class _Vocabulary(Section):
    """One SentencePiece vocabulary for all texts (section 5.1), or one for each side.

    It is learned from the training data, or taken from another run or from files.
    """

    shared: bool = Field(
        True,
        description="Whether source and target have one vocabulary. If not, each has one of `size` "
        'pieces, which needs `model.tie = "target"` or `"none"`.',
    )

    size: int | None = Field(
        None,
        ge=8,
        description="Number of pieces, the special ones included. Left out: 4,000, or as many as "
        "the training text gives if these are fewer; where it has more characters, twice as many "
        "as it has.",
        json_schema_extra=FROM_DATA,
    )
    model_type: Literal["bpe", "unigram"] = Field("bpe", description="How pieces are learned.")
    split_digits: bool = Field(True, description="Whether every digit is a piece of its own.")
    character_coverage: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Share of the text's characters that get a piece; the others are unknown.",
    )

    @property
    def places(self):
        """The paths that the vocabulary is taken from, a list; `None`: it is learned."""
        return getattr(self, "from")  # no name in Python

    def description(self):
        """Returns the keys that describe the vocabulary, wherever it is from, as a dictionary."""
        return self.model_dump(exclude={"from"}, exclude_none=True)

    @field_validator("from", check_fields=False)
    @classmethod
    def _one_or_two(cls, places):
        if places is not None and len(places) > 2:
            raise ValueError("must be a run, a file, or two files: of source and target")
        return places


VocabularySettings = create_model(
    "VocabularySettings",
    __base__=_Vocabulary,
    __doc__=_Vocabulary.__doc__,
    **{
        "from": (
            Files | None,
            Field(
                None,
                description="A run, or a SentencePiece file with the special pieces pad, unk, bos "
                "and eos, or two files, of source and target: the vocabulary is taken from there "
                "and copied into the run. The other keys may be left out, and must not differ.",
            ),
        )
    },
)


class OptimizerSettings(Section):
    """Adam with the paper's constants (section 5.3), or AdamW."""

    kind: Literal["adam", "adamw"] = Field("adam", description="The optimizer.")
    weight_decay: float | None = Field(
        None,
        gt=0,
        description="For AdamW: what an update takes away from each weight, times the learning "
        "rate. Only matrices decay; biases, layer normalisations and tables of embeddings and "
        "positions do not.",
    )
    beta_1: Rate = Field(0.9, description="Momentum of the mean of gradients.")
    beta_2: Rate = Field(0.98, description="Momentum of the mean of squared gradients.")
    epsilon: float = Field(1e-9, gt=0, description="Added to the root of the latter.")
    clip_norm: float | None = Field(
        None, gt=0, description="Longest gradient of all weights together; longer ones are scaled."
    )
    ema_momentum: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Validation and the final model use a moving average of the weights, with "
        "this momentum.",
    )

    @model_validator(mode="after")
    def _decay_is_adamws(self):
        if self.kind == "adamw" and self.weight_decay is None:
            raise ValueError('`kind = "adamw"` needs `weight_decay`, for example 0.01.')
        if self.kind == "adam" and self.weight_decay is not None:
            raise ValueError('`weight_decay` needs `kind = "adamw"`.')
        return self


class ScheduleSettings(Section):
    """The learning rate. It rises in a straight line, and then falls or stays.

    The paper's warm-up of 4,000 updates is a twenty-fifth of its training, and would be all of a
    short one. Left out, it is a tenth of the updates, at most 4,000; and the rate of Eq. 3, which
    would rise to more the sooner it turns, then has as its peak what it reaches after 4,000.
    """

    kind: Literal["inverse_sqrt", "linear", "cosine", "constant"] = Field(
        "inverse_sqrt",
        description="After the warm-up: Eq. 3 of the paper; a straight line, or half a cosine, to "
        "zero at the last update; or no change.",
    )
    warmup_steps: Positive | None = Field(
        None,
        description="Updates of the warm-up; 1 is none. Not longer than the training. Left out: a "
        "tenth of the updates, at most 4,000.",
        json_schema_extra=FROM_DATA,
    )
    scale: float | None = Field(
        None, gt=0, description='Factor on Eq. 3, for `kind = "inverse_sqrt"` without `peak`.'
    )
    peak: float | None = Field(
        None,
        gt=0,
        description='Highest learning rate. `kind = "inverse_sqrt"` does not need it: left out, it '
        "is that of Eq. 3; where `warmup_steps` is left out as well and is below 4,000, that of "
        "Eq. 3 after 4,000 updates.",
    )

    @model_validator(mode="after")
    def _one_height(self):
        if self.kind != "inverse_sqrt" and self.peak is None:
            raise ValueError(f'`kind = "{self.kind}"` needs `peak`, the highest learning rate.')
        if self.scale is not None and (self.kind != "inverse_sqrt" or self.peak is not None):
            raise ValueError(
                '`scale` belongs to `kind = "inverse_sqrt"` without `peak`; remove one of them.'
            )
        return self

    @property
    def shortest(self):
        """Updates of the shortest training that such a warm-up fits into, if it is set."""
        falls = self.kind in ("linear", "cosine")  # to zero, for which an update must be left
        return None if self.warmup_steps is None else self.warmup_steps + falls

    def check_length(self, updates):
        """Raises a `ValueError` if a training of so many updates is too short for the warm-up.

        What is left out of both will follow from the other one.
        """
        if updates is None:
            return
        falls = self.kind in ("linear", "cosine")
        if self.warmup_steps is None and updates <= falls:
            raise ValueError(
                f'`training.updates` must be at least 2 with `schedule.kind = "{self.kind}"`, '
                f"whose rate is zero in the last one. Received: training.updates={updates}."
            )
        if self.warmup_steps is not None and updates < self.shortest:
            raise ValueError(
                f"`schedule.warmup_steps` must be {'below' if falls else 'at most'} "
                f"`training.updates`, the length of the training. Received: "
                f"schedule.warmup_steps={self.warmup_steps}, training.updates={updates}."
            )


def _figures():
    """The names of what the tasks' validations measure, each once."""
    return dict.fromkeys(name for task in TASKS.values() for name in task.metrics)


class TrainingSettings(Section):
    """Length, loss, arithmetic, and how often to look and to save.

    The paper's length of 100,000 updates is 20 times through its 4.5 million pairs, and would be a
    thousand times through a few thousand. Numbers that are left out have the paper's proportions,
    as their keys below describe; a training begins with a line that names them, and keeps them in
    the `config.toml` of its run.
    """

    # In a run that goes on. The others, here and in other sections, decided what it has learned.
    may_change: ClassVar = (
        "updates", "validate_every", "validate_sentences", "checkpoint_every", "keep_checkpoints",
        "best_by", "patience", "final_model", "log_every", "progress_seconds", "jit_compile",
    )  # fmt: skip

    updates: Positive | None = Field(
        None,
        description="Length of the training, in optimizer updates. Left out: 20 times through the "
        "training data, at least 1,000 and at most 100,000 updates, and at least twice a "
        "`warmup_steps` that is given.",
        json_schema_extra=FROM_DATA,
    )
    accumulate: Positive = Field(
        1,
        description="Batches of an update: it is that of all their sentences in one batch, with "
        "the memory of one.",
    )
    subword_sampling: Rate = Field(
        0.0,
        description="Above 0, words are cut into other pieces in every epoch: the rate of BPE "
        "dropout, or the exponent for a unigram vocabulary.",
    )
    r_drop: float = Field(
        0.0,
        ge=0,
        description="Above 0, two passes of every batch are made to agree (R-Drop): the weight of "
        "that loss, 5 in its paper. An update takes twice as long.",
    )
    label_smoothing: Rate = Field(
        0.1, description="Share of the probability that is spread over all pieces (section 5.4)."
    )
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = Field(
        "float32",
        description="Arithmetic; `auto` is bfloat16 where the machine multiplies it natively, "
        "otherwise float32.",
    )
    jit_compile: bool = Field(False, description="Whether XLA compiles the update.")
    seed: int = Field(
        1, ge=0, lt=2**31, description="Decides first weights, dropout and the order of batches."
    )
    validate_every: Positive | None = Field(
        None,
        description="Updates between two validations. Left out: a tenth of `updates`, at most "
        "1,000.",
        json_schema_extra=FROM_DATA,
    )
    validate_sentences: int = Field(
        200,
        ge=0,
        description="Inputs that a validation answers for what is measured of answers, such as "
        "BLEU; 0 for none.",
    )
    checkpoint_every: Positive | None = Field(
        None,
        description="Updates between two checkpoints. Left out: a tenth of `updates`, at most "
        "1,000.",
        json_schema_extra=FROM_DATA,
    )
    keep_checkpoints: Positive = Field(3, description="Checkpoints that are kept.")
    best_by: Literal[tuple(_figures())] | None = Field(
        None,
        description="What judges the best validation, whose checkpoint is kept as well: one of the "
        "task's figures.",
    )
    patience: Positive | None = Field(
        None, description="Stops after so many validations in a row that were no better."
    )
    final_model: Literal["last", "best"] = Field(
        "last", description="Which checkpoint becomes the run's model; the paper's is the last."
    )
    log_every: Positive = Field(50, description="Updates between two points of the curves.")
    progress_seconds: float = Field(
        10.0, gt=0, description="Seconds between two lines of progress where there is no terminal."
    )

    @model_validator(mode="after")
    def _best_is_defined(self):
        if self.best_by is None and (self.patience is not None or self.final_model == "best"):
            key = "patience" if self.patience is not None else 'final_model = "best"'
            raise ValueError(f'`{key}` needs `best_by`, such as "perplexity".')
        return self
