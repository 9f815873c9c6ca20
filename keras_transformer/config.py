"""The dimensions of a Transformer, with a preset for every row of Table 3."""

import dataclasses

from keras_transformer.checks import (
    check_choice,
    check_count,
    check_flag,
    check_positive,
    check_rate,
    is_integer,
)

NORMS = ("post", "pre")
POSITIONS = ("sinusoidal", "learned", "none")
TIES = ("all", "target", "none")


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Everything that decides the shape and the arithmetic of a `Transformer`.

    The defaults are the base model of the paper with its English-German vocabulary.

    Args:
        vocab_size: Entries of the source vocabulary, and of the target's unless that is given.
        target_vocab_size: Entries of the target vocabulary. `None`: source and target share one.
        num_layers: Blocks in the encoder.
        num_decoder_layers: Blocks in the decoder. `None`: as many as in the encoder.
        d_model: Width of the model, in features.
        d_ff: Width inside the feed-forward network, in features.
        num_heads: Attention heads.
        d_k: Width of a query and key head. `None`: `d_model / num_heads`.
        d_v: Width of a value head. `None`: the same as `d_k`'s default.
        dropout: Rate on the output of each sublayer and on the sum of embedding and position
            (section 5.4).
        attention_dropout: Rate on the attention weights. The paper does not mention it.
        activation_dropout: Rate inside the feed-forward network. The paper does not mention it.
        activation: Keras activation of the feed-forward network.
        norm: `"post"` as in the paper: `LayerNorm(x + Sublayer(x))`; or `"pre"`:
            `x + Sublayer(LayerNorm(x))` with one more normalisation after each stack.
        position: `"sinusoidal"` (section 3.5), `"learned"` (Table 3, row E) or `"none"`.
        max_length: Longest source and longest output, in tokens.
        tie: Which of source embedding, target embedding and output weights are one matrix:
            `"all"` (section 3.4), `"target"` (target embedding and output) or `"none"`.
        attention_bias: Whether the four projections of an attention have a bias. The paper's are
            plain matrices.
        layer_norm_epsilon: Added to the variance in every layer normalisation.
        pad_id: Token id that fills up short sentences and is never attended to.
        bos_id: Token id that starts the decoder.
        eos_id: Token id that ends a sentence.

    Raises:
        ValueError: If a value is out of range or two values contradict each other.

    Reference: Vaswani et al. (2017), Table 3.
    """

    vocab_size: int = 37_000
    target_vocab_size: int | None = None
    num_layers: int = 6
    num_decoder_layers: int | None = None
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    d_k: int | None = None
    d_v: int | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: str = "relu"
    norm: str = "post"
    position: str = "sinusoidal"
    max_length: int = 512
    tie: str = "all"
    attention_bias: bool = False
    layer_norm_epsilon: float = 1e-6
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int = 3

    def __post_init__(self):
        self._check_sizes()
        self._check_choices()
        self._check_tokens()

    def _check_sizes(self):
        for name in ("vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_length"):
            check_count(name, getattr(self, name))
        for name in ("target_vocab_size", "num_decoder_layers", "d_k", "d_v"):
            check_count(name, getattr(self, name), optional=True)
        if self.d_model % self.num_heads and (self.d_k is None or self.d_v is None):
            raise ValueError(
                "`d_model` must be divisible by `num_heads`, so that every head has the same "
                "size, unless `d_k` and `d_v` are given. "
                f"Received: d_model={self.d_model}, num_heads={self.num_heads}."
            )
        if self.position == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                "`d_model` must be even for sinusoidal positions, which come in pairs of sine "
                f"and cosine. Received: d_model={self.d_model}."
            )
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            check_rate(name, getattr(self, name))
        check_positive("layer_norm_epsilon", self.layer_norm_epsilon)

    def _check_choices(self):
        for name, choices in (("norm", NORMS), ("position", POSITIONS), ("tie", TIES)):
            check_choice(name, getattr(self, name), choices)
        if not isinstance(self.activation, str):
            raise TypeError(
                "`activation` must be the name of an activation of Keras. "
                f"Received: activation={self.activation!r}."
            )
        check_flag("attention_bias", self.attention_bias)
        if self.tie == "all" and self.target_vocab_size not in (None, self.vocab_size):
            raise ValueError(
                "`tie='all'` needs one vocabulary for source and target. "
                f"Received: vocab_size={self.vocab_size}, "
                f"target_vocab_size={self.target_vocab_size}."
            )

    def _check_tokens(self):
        ids = (self.pad_id, self.bos_id, self.eos_id)
        smallest = min(self.vocab_size, self.output_size)
        exist = all(is_integer(token) and 0 <= token < smallest for token in ids)
        if not exist or self.pad_id == self.eos_id:
            raise ValueError(
                "`pad_id`, `bos_id` and `eos_id` must lie in the vocabulary, and padding must "
                f"differ from the end of a sentence. Received: pad_id={self.pad_id}, "
                f"bos_id={self.bos_id}, eos_id={self.eos_id}, vocabulary of {smallest}."
            )

    @property
    def output_size(self):
        """Entries of the target vocabulary."""
        return self.target_vocab_size or self.vocab_size

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

    @classmethod
    def from_dict(cls, fields):
        """Returns the configuration that `to_dict` described."""
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(fields) - set(known))
        if unknown:
            raise ValueError(
                f"`TransformerConfig` has the fields {', '.join(known)}. "
                f"Received: {', '.join(unknown)}."
            )
        return cls(**fields)

    def to_dict(self):
        """Returns the fields as a dictionary of plain values."""
        return dataclasses.asdict(self)


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
