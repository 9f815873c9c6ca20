"""The dimensions of a Transformer, with a preset for every row of Table 3."""

import dataclasses
import functools
from typing import Annotated, Literal

from keras_transformer.checks import (
    check_activation,
    check_count,
    check_fields,
    check_positive,
    check_rate,
    is_integer,
)

Count = Annotated[int, check_count]
OptionalNumber = Annotated[float | None, functools.partial(check_positive, optional=True)]
OptionalCount = Annotated[int | None, functools.partial(check_count, optional=True)]
Rate = Annotated[float, check_rate]
Position = Literal["sinusoidal", "learned", "rotary", "alibi", "none"]
Score = Literal["scaled_dot_product", "dot_product", "additive"]


def head_sizes(d_model, num_heads, d_k=None, d_v=None):
    """Returns d_k and d_v, which are `d_model / num_heads` unless they are given.

    Raises:
        ValueError: If `d_model` is not divisible by `num_heads` where that decides.
    """
    if d_model % num_heads and (d_k is None or d_v is None):
        raise ValueError(
            "`d_model` must be divisible by `num_heads`, so that every head has the same "
            "size, unless `d_k` and `d_v` are given. "
            f"Received: d_model={d_model}, num_heads={num_heads}."
        )
    return d_k or d_model // num_heads, d_v or d_model // num_heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """Everything that decides the shape and the arithmetic of a block, but for `d_model`.

    Args:
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward network, in features.
        d_k: Width of a query and key head. `None`: `d_model / num_heads`.
        d_v: Width of a value head. `None`: `d_model / num_heads`.
        dropout: Rate on the output of each sublayer (section 5.4).
        attention_dropout: Rate on the attention weights. The paper does not mention it.
        activation_dropout: Rate inside the feed-forward network. The paper does not mention it.
        activation: Keras activation of the feed-forward network.
        norm: `"post"` as in the paper: `LayerNorm(x + Sublayer(x))`; or `"pre"`:
            `x + Sublayer(LayerNorm(x))` with one more normalisation after each stack.
        layer_norm_epsilon: Added to the variance in every layer normalisation.
        attention_bias: Whether the four projections of an attention have a bias. The paper's are
            plain matrices.
        score: How well a key fits a query in every attention: `"scaled_dot_product"` (Eq. 1),
            `"dot_product"`, which is not divided by `sqrt(d_k)`, or `"additive"`, a network with
            one hidden layer (Bahdanau et al., 2015), which is slower.
        feed_forward_bias: Whether the two maps of the feed-forward network have a bias, as the
            paper's have.
        position: `"sinusoidal"` (section 3.5), `"learned"` (Table 3, row E), `"rotary"`, `"alibi"`
            or `"none"`. Rotary positions and ALiBi are the work of every self-attention, the
            others of the embedding alone. With ALiBi a source and its reverse are the same to an
            encoder and decoder.
        max_length: Longest source and longest output, in tokens.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """

    num_heads: Count = 8
    d_ff: Count = 2048
    d_k: OptionalCount = None
    d_v: OptionalCount = None
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0
    activation: Annotated[str, check_activation] = "relu"
    norm: Literal["post", "pre"] = "post"
    layer_norm_epsilon: Annotated[float, check_positive] = 1e-6
    attention_bias: bool = False
    score: Score = "scaled_dot_product"
    feed_forward_bias: bool = True
    position: Position = "sinusoidal"
    max_length: Count = 512

    def __post_init__(self):
        check_fields(self)

    @property
    def is_pre_norm(self):
        """Whether a sublayer sees its input normalised, and not its output."""
        return self.norm == "pre"

    @classmethod
    def from_dict(cls, fields):
        """Returns the configuration that `to_dict` described.

        Raises:
            ValueError: If there is no such field.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(fields) - set(known))
        if unknown:
            raise ValueError(
                f"`{cls.__name__}` has the fields {', '.join(known)}. "
                f"Received: {', '.join(unknown)}."
            )
        return cls(**fields)

    def to_dict(self):
        """Returns the fields as a dictionary of plain values."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig(BlockConfig):
    """Everything that decides a stack of blocks over embedded tokens.

    The arguments of `BlockConfig`, which are those of every block, are arguments as well.

    Args:
        dropout: Rate on the output of each sublayer and on the sum of embedding and position
            (section 5.4).
        vocab_size: Entries of the vocabulary.
        num_layers: Blocks of the stack; of an encoder-decoder, those of the encoder.
        d_model: Width of the model, in features.
        embedding_scale: What embeddings are multiplied with. `None`: `sqrt(d_model)` (section 3.4).
        sinusoid_layout: `"interleaved"` as in the paper, sine and cosine by turns, or `"halves"`.
        sinusoid_endpoint: Whether the longest wave is exactly 10,000 times the shortest, as in
            tensor2tensor.
        position_offset: Position of the first token; the paper's is 0.
        pad_id: Token id that pads short texts and is never attended to.
        bos_id: Token id that starts an output.
        eos_id: Token id that ends a text.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.
    """

    vocab_size: Count = 37_000
    num_layers: Count = 6
    d_model: Count = 512
    embedding_scale: OptionalNumber = None
    sinusoid_layout: Literal["interleaved", "halves"] = "interleaved"
    sinusoid_endpoint: bool = False
    position_offset: Annotated[int, functools.partial(check_count, least=0)] = 0
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int = 3

    def __post_init__(self):
        super().__post_init__()
        d_k, _ = head_sizes(self.d_model, self.num_heads, self.d_k, self.d_v)
        if self.position == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                "`d_model` must be even for sinusoidal positions, which come in pairs of sine "
                f"and cosine. Received: d_model={self.d_model}."
            )
        if self.position == "rotary" and d_k % 2:
            raise ValueError(
                "`d_k` must be even for rotary positions, which turn pairs of features. "
                f"Received: d_k={d_k}."
            )
        if self.position != "sinusoidal" and (
            self.sinusoid_layout != "interleaved" or self.sinusoid_endpoint or self.position_offset
        ):
            raise ValueError(
                "`sinusoid_layout`, `sinusoid_endpoint` and `position_offset` have no effect but "
                f"for sinusoidal positions. Received: position={self.position!r}."
            )
        self._check_tokens()

    def _check_tokens(self):
        ids = (self.pad_id, self.bos_id, self.eos_id)
        exist = all(is_integer(token) and 0 <= token < self.smallest for token in ids)
        if not exist or self.pad_id == self.eos_id:
            raise ValueError(
                "`pad_id`, `bos_id` and `eos_id` must lie in the vocabulary, and padding must "
                f"differ from the end of a sentence. Received: pad_id={self.pad_id}, "
                f"bos_id={self.bos_id}, eos_id={self.eos_id}, vocabulary of {self.smallest}."
            )

    @property
    def smallest(self):
        """Entries of the smallest vocabulary."""
        return self.vocab_size

    @property
    def output_size(self):
        """Entries of the vocabulary of the outputs."""
        return self.vocab_size

    @property
    def decoder_layers(self):
        """Blocks that generate, with a cache each."""
        return self.num_layers

    @classmethod
    def preset(cls, name, **changes):
        """Returns the named row of Table 3 (or `"tiny"` or `"small"`), with some fields changed.

        Args:
            name: A key of `PRESETS`.
            **changes: Fields to replace, for example `vocab_size`.

        Raises:
            ValueError: If there is no such preset or field.
        """
        if name not in PRESETS:
            raise ValueError(
                f"`name` must be one of {', '.join(PRESETS)}. Received: name={name!r}."
            )
        return cls.from_dict({**PRESETS[name], **changes})

    @property
    def block(self):
        """The `BlockConfig` of every block."""
        names = [field.name for field in dataclasses.fields(BlockConfig)]
        return BlockConfig(**{name: getattr(self, name) for name in names})


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig(StackConfig):
    """Everything that decides the shape and the arithmetic of a `Transformer`.

    The defaults are the base model of the paper with its English-German vocabulary. The arguments
    of `StackConfig` and of `BlockConfig` are arguments as well.

    Args:
        vocab_size: Entries of the source vocabulary, and of the target's unless that is given.
        target_vocab_size: Entries of the target vocabulary. `None`: source and target share one.
        num_decoder_layers: Blocks in the decoder. `None`: as many as in the encoder.
        tie: Which of source embedding, target embedding and output weights are one matrix:
            `"all"` (section 3.4), `"target"` (target embedding and output) or `"none"`.
        output_bias: Whether a bias is added to the logits. The paper's output weights have none.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.

    Example:
        >>> from keras_transformer import TransformerConfig
        >>> big = TransformerConfig.preset("big", vocab_size=37000)
        >>> big.d_model, big.num_heads, big.dropout
        (1024, 16, 0.3)

    Reference: Vaswani et al. (2017), Table 3.
    """

    target_vocab_size: OptionalCount = None
    num_decoder_layers: OptionalCount = None
    tie: Literal["all", "target", "none"] = "all"
    output_bias: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.tie == "all" and self.target_vocab_size not in (None, self.vocab_size):
            raise ValueError(
                "`tie='all'` needs one vocabulary for source and target. "
                f"Received: vocab_size={self.vocab_size}, "
                f"target_vocab_size={self.target_vocab_size}."
            )

    @property
    def smallest(self):
        """Entries of the smaller of both vocabularies."""
        return min(self.vocab_size, self.output_size)

    @property
    def output_size(self):
        """Entries of the target vocabulary."""
        return self.target_vocab_size or self.vocab_size

    @property
    def decoder_layers(self):
        """Blocks in the decoder."""
        return self.num_decoder_layers or self.num_layers


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(StackConfig):
    """Everything that decides the shape and the arithmetic of a `LanguageModel`.

    The arguments are those of `StackConfig` and of `BlockConfig`, and:

    Args:
        tie: Whether embedding and output weights are one matrix, `"all"` (section 3.4), or not,
            `"none"`.
        output_bias: Whether a bias is added to the logits. The paper's output weights have none.

    Example:
        >>> from keras_transformer import LanguageModelConfig
        >>> LanguageModelConfig.preset("tiny", vocab_size=4000).num_layers
        4
    """

    tie: Literal["all", "none"] = "all"
    output_bias: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassifierConfig(StackConfig):
    """Everything that decides the shape and the arithmetic of a `TextClassifier`.

    The arguments are those of `StackConfig` and of `BlockConfig`, and:

    Args:
        labels: Names of the classes, in the order of the logits; at least two, each once.
        pooling: What of the encoder's output stands for the text: `"mean"` or `"max"` over its
            tokens, `"first"`, the first token, or `"attention"`, a mean with weights that are
            learned.

    Example:
        >>> from keras_transformer import ClassifierConfig
        >>> config = ClassifierConfig.preset("tiny", vocab_size=4000, labels=("bad", "good"))
        >>> config.num_labels
        2
    """

    labels: tuple = ("0", "1")
    pooling: Literal["mean", "max", "first", "attention"] = "mean"

    def __post_init__(self):
        super().__post_init__()
        labels = tuple(self.labels) if isinstance(self.labels, (list, tuple)) else ()
        if len(set(labels)) < 2 or not all(isinstance(label, str) for label in labels):
            raise ValueError(
                "`labels` must be at least two different strings. "
                f"Received: labels={self.labels!r}."
            )
        if len(set(labels)) < len(labels):
            raise ValueError(f"`labels` must each be there once. Received: labels={self.labels!r}.")
        object.__setattr__(self, "labels", labels)  # JSON knows lists only

    @property
    def num_labels(self):
        """Number of classes C."""
        return len(self.labels)


# Table 3: what each row changes of the base model. Rows D with label smoothing 0.0 and 0.2 are the
# base model; their difference is `label_smoothing` in training.
PRESETS = {
    "base": {},
    "a_heads_1": {"num_heads": 1},
    "a_heads_4": {"num_heads": 4},
    "a_heads_16": {"num_heads": 16},
    "a_heads_32": {"num_heads": 32},
    "b_d_k_16": {"d_k": 16},
    "b_d_k_32": {"d_k": 32},
    "c_layers_2": {"num_layers": 2},
    "c_layers_4": {"num_layers": 4},
    "c_layers_8": {"num_layers": 8},
    "c_d_model_256": {"d_model": 256},
    "c_d_model_1024": {"d_model": 1024},
    "c_d_ff_1024": {"d_ff": 1024},
    "c_d_ff_4096": {"d_ff": 4096},
    "d_dropout_0.0": {"dropout": 0.0},
    "d_dropout_0.2": {"dropout": 0.2},
    "d_label_smoothing_0.0": {},
    "d_label_smoothing_0.2": {},
    "e_learned_positions": {"position": "learned"},
    "big": {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3},
    # Not in the paper: trains in minutes on a laptop.
    "tiny": {"num_layers": 4, "d_model": 128, "d_ff": 256, "num_heads": 4, "max_length": 128},
    # Not in the paper: for some ten thousand pairs. The size and the dropout of Wu et al. (2021),
    # the best published model of Multi30K's text, with normalisation before each sublayer, which
    # learns in far fewer updates.
    "small": {
        "num_layers": 4,
        "d_model": 128,
        "d_ff": 256,
        "num_heads": 4,
        "dropout": 0.3,
        "norm": "pre",
        "max_length": 256,
    },
}
