"""The section `[training]` and its table `[training.lora]`."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from keras_transformer.config.parts import PARTS
from keras_transformer.mixers.attention import PROJECTIONS
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.fields import FROM_DATA, Positive, Rate, Section

TOKEN_CUTOFF = 0.05  # Gao et al. (2022), section 4.1


def _metrics():
    """Returns the names of the metrics of all tasks, each once."""
    return dict.fromkeys(name for task in TASKS.values() for name in task.metrics)


class LoraSettings(Section):
    """LoRA (Hu et al., 2021): small adapters are trained instead of the weights of `start_from`.

    A projection of attention computes `x (W + alpha / rank * A B)`, and only `A` and `B`, of `rank`
    columns and rows, are trained. At the end, they are added to `W`, so that the run has an
    ordinary model. Parts that do not begin with the weights of `model.start_from`, such as a new
    head, are trained without adapters.
    """

    rank: Positive = Field(8, description="Rank of the adapters.")
    alpha: float = Field(
        16.0, gt=0, description="Scale of the adapters, which is divided by the rank."
    )
    targets: list[Literal[PROJECTIONS]] = Field(
        ["query", "value"],
        min_length=1,
        description="Projections of every attention layer that have adapters.",
    )

    @field_validator("targets")
    @classmethod
    def _each_once(cls, targets):
        if len({*targets}) < len(targets):
            raise ValueError("must name each projection once")
        return targets


class TrainingSettings(Section):
    """Length, loss and arithmetic of training, and intervals of validations and checkpoints.

    The paper's 100,000 updates are 20 epochs of its 4.5 million pairs, but would be a thousand
    epochs of a few thousand pairs. Values that you omit are therefore proportional to the paper's
    values, as described below. `train` first prints these values, and stores them in the
    `config.toml` of the run.
    """

    # When a run resumes. The other keys, here and in other sections, affect what it has learned.
    may_change: ClassVar = (
        "updates", "validate_every", "validate_sentences", "checkpoint_every", "checkpoint_epochs",
        "keep_checkpoints", "best_by", "patience", "final_model", "log_every", "progress_seconds",
        "jit_compile",
    )  # fmt: skip

    updates: Positive | None = Field(
        None,
        description="Length of training, in optimizer updates. If omitted: 20 epochs, but at "
        "least 1,000 and at most 100,000 updates, and at least twice a given `warmup_steps`.",
        json_schema_extra=FROM_DATA,
    )
    accumulate: Positive = Field(
        1,
        description="Number of batches in an update (gradient accumulation). The update is the "
        "same as with one large batch, but needs only the memory of one small batch.",
    )
    subword_sampling: Rate = Field(
        0.0,
        description="Strength of subword regularisation, which splits words into different tokens "
        "in every epoch: the rate of BPE dropout, or the exponent for a unigram vocabulary. 0 for "
        "none.",
    )
    r_drop: float = Field(
        0.0,
        ge=0,
        description="Weight of R-Drop, a loss that makes two passes of every batch agree. 5 in "
        "its paper, 0 for none. With R-Drop, an update takes twice as long.",
    )
    simcut: float = Field(
        0.0,
        ge=0,
        description="Weight of SimCut (Gao et al., 2022), a loss for tasks that predict "
        "tokens. It makes the predictions for a batch agree with the predictions for the same "
        "batch without the embeddings of some tokens. 3 in its paper, 0 for none. With SimCut, "
        "an update takes twice as long.",
    )
    token_cutoff: Rate = Field(
        TOKEN_CUTOFF,
        description="For SimCut: share of the tokens of source and decoder input whose embeddings "
        "are replaced by zeros. Their positions remain, and so do the tokens that begin and end a "
        "text.",
    )
    ctc_weight: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="For speech recognition: weight of CTC (Graves et al., 2006) in the loss; "
        "the rest is the weight of the cross-entropy. CTC teaches the encoder where in a "
        "recording each token is, which helps the decoder to attend (Kim et al., 2017). 0 for "
        "none; 0.3 is usual.",
    )
    distillation_weight: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Share of the teachers' probabilities in the loss of word-level "
        "distillation (`distill --word-level`). The rest is the cross-entropy of the label.",
        json_schema_extra={"default_in_words": "0.5 with `data.train_distributions`"},
    )
    freeze: list[Literal[PARTS]] | None = Field(
        None,
        min_length=1,
        description="Parts of the model that keep the weights of `model.start_from`: they have no "
        "gradients, no optimizer state and no weight decay. A table that two parts share, such as "
        "tied output weights, is frozen with either of them. Dropout in frozen parts stays active.",
    )
    layer_decay: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Factor on the learning rate from each layer to the layer below it "
        "(ELECTRA, BEiT). Block i of N, counted from 0, has `layer_decay ** (N - i)` of the "
        "rate. The layers before a stack have `layer_decay ** (N + 1)` of it, and the head has "
        "the whole rate. In an encoder-decoder, each stack counts from its own end.",
    )
    lora: LoraSettings | None = Field(
        None,
        description="A table `[training.lora]`. If it exists, even if it is empty, low-rank "
        "adapters are trained instead of the weights of `model.start_from`.",
        json_schema_extra={"in_words": "table"},
    )
    quantize: Literal["int8", "int4"] | None = Field(
        None,
        description="Quantisation-aware training, so that a quantised file loses less quality. "
        "Losses and gradients are computed with weights rounded as `export litert --quantize` "
        "stores them. The model of the run has rounded weights, also in parts that are not "
        "trained. Usually for a last, short run that starts from a trained run "
        "(`model.start_from`).",
    )
    label_smoothing: Rate = Field(
        0.1,
        description="Share of the probability that is spread over the vocabulary (section 5.4), or "
        "over all labels.",
    )
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = Field(
        "float32",
        description="Arithmetic; `auto` is bfloat16 if the hardware multiplies it natively, "
        "otherwise float32.",
    )
    jit_compile: bool = Field(False, description="Whether XLA compiles the update.")
    seed: int = Field(
        1,
        ge=0,
        lt=2**31,
        description="Random seed of initial weights, dropout and the order of batches.",
    )
    validate_every: Positive | None = Field(
        None,
        description="Updates between two validations. If omitted: a tenth of `updates`, at most "
        "1,000.",
        json_schema_extra=FROM_DATA,
    )
    validate_sentences: int = Field(
        200,
        ge=0,
        description="Number of inputs that a validation answers, for metrics of answers such as "
        "BLEU; 0 for none.",
    )
    checkpoint_every: Positive | None = Field(
        None,
        description="Updates between two checkpoints. If omitted: a tenth of `updates`, at most "
        "1,000.",
        json_schema_extra=FROM_DATA,
    )
    checkpoint_epochs: Positive | None = Field(
        None,
        description="Epochs between two checkpoints, instead of `checkpoint_every`. With "
        "`checkpoint_epochs = 1` and `keep_checkpoints = 10`, `average --last 10` averages the "
        "models at the ends of the last ten epochs. The last update always has a checkpoint. "
        "If training ends within an epoch, this checkpoint is one of the ten.",
    )
    keep_checkpoints: Positive = Field(3, description="Number of recent checkpoints to keep.")
    best_by: Literal[tuple(_metrics())] | None = Field(
        None,
        description="Metric of the task that determines the best validation. Its checkpoint is "
        "also kept.",
    )
    patience: Positive | None = Field(
        None,
        description="Number of validations in a row without improvement after which training "
        "stops.",
    )
    final_model: Literal["last", "best"] = Field(
        "last", description="Checkpoint that becomes the model of the run; the last in the paper."
    )
    log_every: Positive = Field(50, description="Updates between two points of the curves.")
    progress_seconds: float = Field(
        10.0,
        gt=0,
        description="Seconds between two progress lines if the output is not a terminal.",
    )

    @model_validator(mode="after")
    def _one_interval(self):
        if self.checkpoint_every is not None and self.checkpoint_epochs is not None:
            raise ValueError(
                "`checkpoint_epochs` replaces `checkpoint_every`: remove one of them. Received: "
                f"checkpoint_epochs={self.checkpoint_epochs}, "
                f"checkpoint_every={self.checkpoint_every}."
            )
        return self

    @model_validator(mode="after")
    def _one_consistency(self):
        if self.simcut and self.r_drop:
            raise ValueError(
                "`simcut` and `r_drop` cannot be combined: each compares two passes of a batch in "
                f"its own way. Received: simcut={self.simcut}, r_drop={self.r_drop}."
            )
        if not self.simcut and self.token_cutoff != TOKEN_CUTOFF:
            raise ValueError("`token_cutoff` needs `simcut`, for example 3.")
        return self

    @model_validator(mode="after")
    def _rounds_what_is_trained(self):
        if self.quantize is not None and self.lora is not None:
            raise ValueError(
                "`quantize` cannot be combined with [training.lora]: sums of weights and adapters "
                "would not be rounded. Train the adapters first, and then start from that run. "
                f"Received: quantize={self.quantize!r}."
            )
        return self

    @model_validator(mode="after")
    def _best_is_defined(self):
        if self.best_by is None and (self.patience is not None or self.final_model == "best"):
            key = "patience" if self.patience is not None else 'final_model = "best"'
            raise ValueError(f'`{key}` needs `best_by`, such as "perplexity".')
        return self
