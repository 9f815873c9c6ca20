"""Configurations of a `MultiVectorEncoder`: its head and the whole model."""

import dataclasses
from typing import Any, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import OptionalCount, OptionalNumber, is_integer
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part, PartConfig
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput

IDS = ("query_marker_id", "passage_marker_id", "expansion_id")
LENGTHS = ("query_length", "passage_length", "expansion_length")


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiVectorHead(PartConfig):
    """Configuration of a head that represents every token of a text by a vector of unit length.

    Args:
        **options: See `help(MultiVectorHead)`.
    """

    dimensions: OptionalCount = option(
        None,
        """Number of features of a token's vector, to which a linear map projects the encoder's
        output; 128 in ColBERT. `None`: `d_model`, without a map.""",
    )
    projection_bias: bool = option(False, "Adds a bias to the linear map.")
    query_length: OptionalCount = option(
        None,
        """Maximum length of a query in tokens, including its marks. Longer queries are truncated.
        `None`: `max_length`.""",
        statistic=True,
    )
    passage_length: OptionalCount = option(
        None,
        """Maximum length of a passage in tokens, including its marks. Longer passages are
        truncated.
        `None`: `max_length`.""",
        statistic=True,
    )
    query_marker_id: int | None = option(
        None,
        "Token id that marks a query, before its text. `None`: no such token.",
    )
    passage_marker_id: int | None = option(
        None,
        "Token id that marks a passage, before its text. `None`: no such token.",
    )
    expansion: Literal["none", "unattended", "attended"] = option(
        "none",
        """Query augmentation: shorter queries are extended with `expansion_id`. The vectors of
        these tokens are compared like the vectors of all other tokens. `"unattended"`: no position
        attends to these tokens, but they attend to the query. `"attended"`: all tokens of a query
        also attend to them.""",
    )
    expansion_id: int | None = option(
        None, "Token id of `expansion`, mostly that of the mask token. `None`: there is none."
    )
    expansion_length: OptionalCount = option(
        None,
        """Length in tokens to which `expansion` extends queries. `None`: `query_length`.""",
        statistic=True,
    )
    skipped_ids: tuple = option(
        (),
        """Token ids whose vectors are left out of passages, such as punctuation.""",
    )
    similarity_scale: OptionalNumber = option(
        None,
        """Factor on the similarities in the loss, the inverse of a temperature. `None`: 1.""",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "skipped_ids", tuple(self.skipped_ids))
        expands = self.expansion != "none"
        if expands != (self.expansion_id is not None):
            raise ValueError(
                "`expansion_id` must be a token id with `expansion`, and None without it. "
                f"Received: expansion={self.expansion!r}, expansion_id={self.expansion_id!r}."
            )
        if self.expansion_length is not None and not expands:
            raise ValueError(
                "`expansion_length` has no effect without `expansion`. "
                f"Received: expansion_length={self.expansion_length}."
            )
        if self.projection_bias and self.dimensions is None:
            raise ValueError("`projection_bias` has no effect without `dimensions`.")

    @property
    def scale(self) -> float:
        """Factor on the similarities in the loss."""
        return 1.0 if self.similarity_scale is None else self.similarity_scale

    def check_with(self, config: Any) -> None:  # noqa: D102
        tokens, most = config.input, config.max_length
        size = tokens.vocab_size
        special = (tokens.pad_id, tokens.eos_id)
        for name in IDS:
            value = getattr(self, name)
            if value is not None and not _is_word(value, size, special):
                raise ValueError(
                    f"`{name}` must be the id of a token, neither `pad_id` nor `eos_id`. "
                    f"Received: {name}={value!r}, vocabulary of {size}."
                )
        if not all(_is_word(value, size, special) for value in self.skipped_ids):
            raise ValueError(
                "`skipped_ids` must be ids of tokens, without `pad_id` and `eos_id`. "
                f"Received: skipped_ids={self.skipped_ids}, vocabulary of {size}."
            )
        for name in LENGTHS:
            value = getattr(self, name)
            if value is not None and not LEAST <= value <= most:
                raise ValueError(
                    f"`{name}` must be from {LEAST} to `max_length`. "
                    f"Received: {name}={value}, max_length={most}."
                )
        query = most if self.query_length is None else self.query_length
        if self.expansion_length is not None and self.expansion_length > query:
            raise ValueError(
                "`expansion_length` must not exceed `query_length`. Received: "
                f"expansion_length={self.expansion_length}, query_length={query}."
            )


LEAST = 4  # tokens: the marks at both ends, the marker, and one of the text


def _is_word(value, size, special):
    return is_integer(value) and 0 <= value < size and value not in special


class MultiVectorEncoderConfig(ModelConfig):
    """Configuration of a `MultiVectorEncoder`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `MultiVectorHead`.

    Example:
        >>> from keras_transformer.models import MultiVectorEncoderConfig
        >>> MultiVectorEncoderConfig.preset("tiny", vocab_size=4000, dimensions=64).head.dimensions
        64
    """

    description = {
        "input": Part(TokenInput()),
        "encoder": ENCODER,
        "head": Part(MultiVectorHead()),
    }
