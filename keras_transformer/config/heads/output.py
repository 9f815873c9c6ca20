"""Configuration of a head that predicts the tokens of an output, and of its searches."""

import dataclasses
import functools
from typing import Annotated, Any, Literal

from keras_transformer.checks import check_count, is_integer
from keras_transformer.config.arguments import documented, option
from keras_transformer.config.heads.generating import GeneratingHead


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputHead(GeneratingHead):
    """Configuration of a head that predicts the tokens of an output, for which there is a source.

    Args:
        **options: See `help(OutputHead)`.
    """

    decoder_start: Literal["token", "zeros"] = option(
        "token",
        """First input of the decoder: `"token"`, the embedding of `bos_id`, or `"zeros"`, zeros in
        its place, as in Marian's models. A position is added to both.""",
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
        self._freeze("banned_ids", "silent_ids")

    has_languages = starts_with_language = forces_language = False

    @property
    def starts_with_zeros(self) -> bool:
        """`True` if the first input of the decoder is zeros instead of an embedding."""
        return self.decoder_start == "zeros"

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        size, tokens = config.output_size, config.tokens
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
