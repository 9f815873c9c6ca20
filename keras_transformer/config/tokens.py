"""Configuration of tokens, which a model reads as its input or a head predicts as its output."""

import dataclasses
from typing import Any, ClassVar, Literal, TypeVar

from keras_transformer.arguments import documented, option, options_of
from keras_transformer.checks import Count, OptionalCount, OptionalNumber, is_integer
from keras_transformer.config.parts import PartConfig
from keras_transformer.config.rules import OutputRules


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyOptions(PartConfig):
    """Options of the part of a configuration that has the vocabulary; see `ModelConfig.tokens`.

    Args:
        **options: See `help(VocabularyOptions)`.
    """

    vocab_size: Count = option(
        37_000,
        "Size of the vocabulary, or of the source vocabulary if the target has its own.",
        set_by="vocabulary",
    )
    embedding_scale: OptionalNumber = option(
        None, "Factor of the embeddings. `None`: `sqrt(d_model)` (section 3.4)."
    )
    pad_id: int = option(
        0,
        "Token id of padding, to which no position attends.",
        set_by="vocabulary",
    )
    bos_id: int = option(2, "Token id that begins an output.", set_by="vocabulary")
    eos_id: int = option(3, "Token id that ends a text.", set_by="vocabulary")

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        smallest = min(self.vocab_size, config.output_size)
        ids = (self.pad_id, self.bos_id, self.eos_id)
        exist = all(is_integer(token) and 0 <= token < smallest for token in ids)
        if not exist or self.pad_id == self.eos_id:
            raise ValueError(
                "`pad_id`, `bos_id` and `eos_id` must be in the vocabulary, and `pad_id` must "
                f"differ from `eos_id`. Received: pad_id={self.pad_id}, bos_id={self.bos_id}, "
                f"eos_id={self.eos_id}, vocabulary of {smallest}."
            )


# Options that only a text that is read has, not one that is generated.
GENERATED = ("segments", "embedding_size")


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenInput(VocabularyOptions):
    """Configuration of token ids and their embedding; in an encoder-decoder, of the source.

    Args:
        **options: See `help(TokenInput)`.
    """

    segments: Literal["none", "from_bos", "after_eos", "first"] = option(
        "none",
        """Segment embeddings: one learned vector is added to the tokens of the first text and
        another one to the tokens of the second (Devlin et al., 2019). The second text begins at the
        first `bos_id`, `"from_bos"`, or after the first `eos_id`, `"after_eos"`. `"first"`: all
        tokens get the vector of the first text. `"none"`: no segment embeddings.""",
    )

    embedding_size: OptionalCount = option(
        None,
        """Width of the embeddings, which are normalised and projected to `d_model`, as in ELECTRA
        and ALBERT. `None`: `d_model`, without a projection.""",
    )

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        if self.embedding_size is not None and config.stacks[0].embedding_norm:
            raise ValueError(
                "`embedding_norm` must be false with `embedding_size`, which has a norm of its "
                "own before the projection."
            )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class NextTokenHead(PartConfig):
    """Configuration of a head that predicts the next token at each position.

    Args:
        **options: See `help(NextTokenHead)`.
    """

    tie: Literal["all", "none"] = option(
        "all",
        """Weight tying: `"all"`, embedding and output weights are the same matrix (section 3.4), or
        `"none"`.""",
    )
    output_bias: bool = option(False, "Adds a bias to the logits. In the paper they have none.")

    @property
    def is_tied(self) -> bool:
        """`True` if the output weights are the table of an embedding."""
        return self.tie != "none"


Head = TypeVar("Head", bound="GeneratingHead")


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneratingHead(NextTokenHead):
    """Configuration of a head that predicts the tokens of an output.

    Args:
        **options: See `help(GeneratingHead)` and `help(OutputRules)`.

    Attributes:
        rules: The `OutputRules`, which are also options of the head by their names.
        accepted: Names of the rules that searches apply to the outputs of this head.
    """

    accepted: ClassVar[tuple] = ("end_ids",)

    rules: OutputRules = OutputRules()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rules != self.rules.only(self.accepted):
            raise ValueError(
                f"A `{type(self).__name__}` has the rules {', '.join(self.accepted)}. "
                f"Received: {self.rules}."
            )

    @classmethod
    def from_flat(cls: type[Head], **options: Any) -> Head:  # noqa: D102
        rules = {name: options.pop(name) for name in cls.accepted if name in options}
        return cls(**options, rules=OutputRules(**rules))

    def options(self) -> dict[str, dataclasses.Field]:  # noqa: D102
        rules = options_of(OutputRules)
        return {**super().options(), **{name: rules[name] for name in self.accepted}}

    def to_flat(self) -> dict[str, Any]:  # noqa: D102
        fields = dataclasses.asdict(self)
        rules = fields.pop("rules")
        return {**fields, **{name: rules[name] for name in self.accepted}}

    @classmethod
    def from_dict(cls: type[Head], fields: dict[str, Any]) -> Head:  # noqa: D102
        rules = OutputRules.from_dict(fields.get("rules", {}))
        return super().from_dict({**fields, "rules": rules})

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        self.rules.check_with(config)


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputHead(GeneratingHead):
    """Configuration of a head that predicts the tokens of an output, for which there is a source.

    Args:
        **options: See `help(OutputHead)`.
    """

    accepted: ClassVar[tuple] = (
        *GeneratingHead.accepted,
        *("banned_ids", "suppressed_ids", "forced_bos_id", "forced_eos_id", "no_repeat_ngram"),
    )

    decoder_start: Literal["token", "zeros"] = option(
        "token",
        """First input of the decoder: `"token"`, the embedding of `bos_id`, or `"zeros"`, zeros in
        its place, as in Marian's models. A position is added to both.""",
    )

    @property
    def starts_with_zeros(self) -> bool:
        """`True` if the first input of the decoder is zeros instead of an embedding."""
        return self.decoder_start == "zeros"


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetHead(OutputHead):
    """Configuration of a head that predicts the next token of a target.

    The target may have its own vocabulary.

    Args:
        **options: See `help(TargetHead)`.
    """

    accepted: ClassVar[tuple] = (*OutputHead.accepted, "language_codes", "max_length_ratio")

    tie: Literal["all", "target", "none"] = option(  # ty: ignore[incompatible-attribute-override]
        "all",
        """Weight tying: `"all"`, source embedding, target embedding and output weights are the same
        matrix (section 3.4); `"target"`, only target embedding and output weights; or
        `"none"`.""",
    )
    target_vocab_size: OptionalCount = option(
        None,
        "Size of the target vocabulary. `None`: source and target share a vocabulary.",
        set_by="vocabulary",
    )

    @property
    def shares_vocabulary(self) -> bool:
        """`True` if source and target share a vocabulary."""
        return self.target_vocab_size is None or self.tie == "all"

    def check_with(self, config: Any) -> None:  # noqa: D102
        tokens = config.tokens
        if self.tie == "all" and self.target_vocab_size not in (None, tokens.vocab_size):
            raise ValueError(
                "`tie='all'` needs one vocabulary for source and target. "
                f"Received: vocab_size={tokens.vocab_size}, "
                f"target_vocab_size={self.target_vocab_size}."
            )
        super().check_with(config)
