"""Configurations of prediction heads: next token, class labels, answer spans, numbers."""

import dataclasses
import functools
from typing import Annotated, Any, Literal

from keras_transformer.checks import check_activation, check_count, check_positive, is_integer
from keras_transformer.config.arguments import documented, option
from keras_transformer.config.block import Count, OptionalCount
from keras_transformer.config.inputs import OptionalNumber
from keras_transformer.config.part_config import PartConfig

LABELS = "Class labels, in the order of the logits; at least two, all different."
Pooling = Literal["mean", "max", "first", "attention"]
POOLING = (
    "mean",
    """Pooling of the encoder's output: `"mean"` or `"max"` over the tokens of a text, `"first"`,
    the first token, or `"attention"`, a mean with learned weights.""",
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


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetHead(NextTokenHead):
    """Configuration of a head that predicts the next token of a target.

    The target may have its own vocabulary.

    Args:
        **options: See `help(TargetHead)`.
    """

    tie: Literal["all", "target", "none"] = option(
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
    decoder_start: Literal["token", "zeros"] = option(
        "token",
        """First input of the decoder: `"token"`, the embedding of `bos_id`, or `"zeros"`, zeros in
        its place, as in Marian's models. A position is added to both.""",
    )
    language_codes: Literal["none", "before", "after", "start"] = option(
        "none",
        """Tokens of languages in front of each source: that of the target language, then that of
        the source language. Each output begins with the first one. The encoder reads the second
        one before the text, `"before"`, as in M2M100, or after its end, `"after"`. `"start"`: as
        `"after"`, but the first one is not part of an output; it is the first input of the decoder
        in place of `bos_id`, as in the mBART of 25 languages. `"none"`: a source has no such
        tokens.""",
        set_by="vocabulary",
    )
    banned_ids: tuple = option(
        (),
        "Token ids that no search emits; the probabilities of the others sum to 1.",
        set_by="vocabulary",
    )
    silent_ids: tuple = option(
        (),
        "Token ids that no search emits, but which keep their probability.",
        set_by="vocabulary",
    )
    forced_bos_id: int | None = option(
        None,
        """Token id that a search emits at the first position of every output, as in BART. `None`:
        no token is forced there.""",
        set_by="vocabulary",
    )
    forced_eos_id: int | None = option(
        None,
        """Token id, usually `eos_id`, that a search emits at the last position of an output of
        maximum length. `None`: such an output has no end.""",
        set_by="vocabulary",
    )

    no_repeat_ngram: Annotated[int, functools.partial(check_count, least=0)] = option(
        0,
        "Number n of tokens: in an output of a search, no n-gram occurs twice. 0: any may.",
        set_by="vocabulary",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("banned_ids", "silent_ids"):  # tuples become lists in JSON
            ids = getattr(self, name)
            if not isinstance(ids, tuple | list):
                raise TypeError(f"`{name}` must be a list of ids. Received: {name}={ids!r}.")
            object.__setattr__(self, name, tuple(ids))

    @property
    def has_languages(self) -> bool:
        """`True` if sources begin with tokens of languages."""
        return self.language_codes != "none"

    @property
    def starts_with_language(self) -> bool:
        """`True` if the first input of the decoder is the token of the target's language."""
        return self.language_codes == "start"

    @property
    def forces_language(self) -> bool:
        """`True` if outputs begin with the token of their language."""
        return self.has_languages and not self.starts_with_language

    @property
    def starts_with_zeros(self) -> bool:
        """`True` if the first input of the decoder is zeros instead of an embedding."""
        return self.decoder_start == "zeros"

    @property
    def shares_vocabulary(self) -> bool:
        """`True` if source and target share a vocabulary."""
        return self.target_vocab_size is None or self.tie == "all"

    def check_with(self, config: Any) -> None:  # noqa: D102
        size, tokens = config.output_size, config.input
        if self.tie == "all" and self.target_vocab_size not in (None, tokens.vocab_size):
            raise ValueError(
                "`tie='all'` needs one vocabulary for source and target. "
                f"Received: vocab_size={tokens.vocab_size}, "
                f"target_vocab_size={self.target_vocab_size}."
            )
        for name in ("banned_ids", "silent_ids"):
            ids = getattr(self, name)
            if not all(is_integer(token) and 0 <= token < size for token in ids):
                raise ValueError(
                    f"`{name}` must be ids of the {size} target tokens. Received: {name}={ids}."
                )
            if tokens.eos_id in ids:
                raise ValueError(
                    f"`{name}` must not contain `eos_id`, or no output would end. "
                    f"Received: eos_id={tokens.eos_id}."
                )
        self._check_forced(size, tokens)

    def _check_forced(self, size, tokens):
        for name in ("forced_bos_id", "forced_eos_id"):
            forced = getattr(self, name)
            if forced is None:
                continue
            if not is_integer(forced) or not 0 <= forced < size or forced == tokens.pad_id:
                raise ValueError(
                    f"`{name}` must be the id of one of the {size} target tokens except "
                    f"`pad_id`, or None. Received: {name}={forced!r}."
                )
            if forced in self.silent_ids or forced == tokens.bos_id != tokens.eos_id:
                raise ValueError(
                    f"`{name}` must be a token that a search may emit: neither `bos_id` nor one "
                    f"of `silent_ids`. Received: {name}={forced}."
                )
        if self.forced_bos_id is not None and self.has_languages:
            raise ValueError(
                "`forced_bos_id` must be None with `language_codes`, which force the first token "
                f"of an output. Received: forced_bos_id={self.forced_bos_id}."
            )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearHeadConfig(PartConfig):
    """Configuration of a head whose last layer is a linear map from the encoder's output to logits.

    Args:
        **options: See `help(LinearHeadConfig)`.
    """

    transform: bool = option(
        False,
        """Adds a dense layer with `transform_activation` and a normalisation before the linear
        layer, as in ModernBERT.""",
    )
    transform_activation: Annotated[str, check_activation] = option(
        "gelu", 'Activation of the `transform`: `"gelu"` or another one, as for `activation`.'
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.transform and self.transform_activation != "gelu":
            raise ValueError(
                "`transform_activation` has no effect without `transform`. "
                f"Received: transform_activation={self.transform_activation!r}."
            )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenLabelsHead(LinearHeadConfig):
    """Configuration of a head that predicts a class label for each token.

    Args:
        **options: See `help(TokenLabelsHead)`.
    """

    labels: tuple = option(("O", "B-X", "I-X"), LABELS, set_by="data")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", _checked_labels(self.labels))

    @property
    def num_labels(self) -> int:
        """Number of classes C."""
        return len(self.labels)


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelsHead(TokenLabelsHead):
    """Configuration of a head that predicts a class label for a whole text.

    Args:
        **options: See `help(LabelsHead)`.
    """

    labels: tuple = option(("0", "1"), LABELS, set_by="data")
    pooling: Pooling = option(*POOLING)
    pooler: bool = option(
        False,
        """Adds a dense layer with `pooler_activation` between pooling and classification, as in
        BERT.""",
    )
    pooler_activation: Annotated[str, check_activation] = option(
        "tanh",
        """Activation of the `pooler`: `"tanh"` as in BERT and RoBERTa, `"relu"` as in DistilBERT,
        or another one, as for `activation`.""",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.pooler and self.pooler_activation != "tanh":
            raise ValueError(
                "`pooler_activation` has no effect without `pooler`. "
                f"Received: pooler_activation={self.pooler_activation!r}."
            )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageLabelsHead(LabelsHead):
    """Configuration of a head that predicts a class label for an image.

    Args:
        **options: See `help(ImageLabelsHead)`.
    """

    pooling: Literal["class", "mean", "max", "attention"] = option(
        "class",
        """Pooling of the encoder's output: `"class"`, the output for a learned class token
        before the patches; `"mean"` or `"max"` over the patches; or `"attention"`, a mean with
        learned weights.""",
    )

    @property
    def has_class_token(self) -> bool:
        """`True` if a learned class token precedes the patches."""
        return self.pooling == "class"


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorHead(PartConfig):
    """Configuration of a head that represents a whole text by one vector.

    Args:
        **options: See `help(VectorHead)`.
    """

    pooling: Pooling = option(*POOLING)
    dimensions: OptionalCount = option(
        None,
        """Number of features of a vector: the first ones of `d_model`, which are scaled to unit
        length afterwards (Kusupati et al., 2022). `None`: all.""",
    )
    normalize: bool = option(
        True,
        """Scales vectors to unit length, so that their dot products are cosines.""",
    )
    similarity_scale: OptionalNumber = option(
        None,
        """Factor on the similarities of texts in the loss, the inverse of a temperature. `None`: 20
        with `normalize`, otherwise 1.""",
    )
    symmetric: bool = option(
        False,
        """Compares, in the loss, also each second text with all first texts of its batch, as in
        CLIP (Radford et al., 2021), instead of each first text with all second texts only.""",
    )

    @property
    def scale(self) -> float:
        """Factor on the similarities of texts in the loss."""
        default = 20.0 if self.normalize else 1.0
        return default if self.similarity_scale is None else self.similarity_scale

    def check_with(self, config: Any) -> None:  # noqa: D102
        width = config.encoder.d_model
        if self.dimensions is not None and self.dimensions > width:
            raise ValueError(
                "`dimensions` must not exceed `d_model`, the width of the encoder. "
                f"Received: dimensions={self.dimensions}, d_model={width}."
            )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class SpansHead(LinearHeadConfig):
    """Configuration of a head that predicts the first and last token of an answer in a passage.

    Args:
        **options: See `help(SpansHead)`.
    """

    max_answer: Count = option(30, "Maximum length of an answer, in tokens.")
    stride: OptionalCount = option(
        None,
        """Number of tokens between the beginnings of two windows of a passage that is too long for
        the model. `None`: half of a window.""",
    )
    pair_layout: Literal["separator", "bert", "roberta"] = option(
        "separator",
        """Layout of a row: `"separator"`, question, `bos_id`, passage, `eos_id`; `"bert"`,
        `bos_id`, question, `eos_id`, passage, `eos_id`; or `"roberta"`, the same with two `eos_id`
        in the middle. In the last two, passages are tokenised as a whole, as pretrained models
        need it.""",
    )
    no_answer: bool = option(
        False,
        """Leaves an answer empty if it is more probable that the passage has none, as in SQuAD
        2.0.""",
    )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberHead(PartConfig):
    """Configuration of a head that predicts a number at every step.

    Args:
        **options: See `help(NumberHead)`.
    """

    target: str = option("target", "Name of the target.", set_by="data")
    target_mean: float = option(
        0.0, "Mean of the target in training.", set_by="data", statistic=True
    )
    target_scale: Annotated[float, check_positive] = option(
        1.0, "Standard deviation of the target in training.", set_by="data", statistic=True
    )
    scored: Count = option(
        1,
        """Number of steps at the end of a window whose outputs are used; the steps before them are
        only context.""",
        set_by="data",
        statistic=True,
    )


def _checked_labels(value):
    """Returns labels as a tuple, also from a list, which JSON has in its place.

    Raises:
        ValueError: If they are not at least two different strings, or a label occurs twice.
    """
    labels = tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(set(labels)) < 2 or not all(isinstance(label, str) for label in labels):
        raise ValueError(
            f"`labels` must be at least two different strings. Received: labels={value!r}."
        )
    if len(set(labels)) < len(labels):
        raise ValueError(f"`labels` must not contain duplicates. Received: labels={value!r}.")
    return labels
