"""Configuration of a head that predicts the next token of a target, and of its searches."""

import dataclasses
import numbers
from typing import Annotated, Any, Literal

from keras_transformer.checks import is_finite
from keras_transformer.config.arguments import documented, option
from keras_transformer.config.block import OptionalCount
from keras_transformer.config.heads.output import OutputHead

LEAST_FACTOR = 0.1


def check_factor(name: str, value: Any) -> None:
    """Requires a factor of the length of a source, or `None`."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a number. Received: {name}={value!r}.")
    if not is_finite(value) or value < LEAST_FACTOR:
        raise ValueError(
            f"`{name}` must be a finite number of at least {LEAST_FACTOR}. "
            f"Received: {name}={value}."
        )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetHead(OutputHead):
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

    length_factor: Annotated[float | None, check_factor] = option(
        None,
        """Searches end an output that has this many times as many tokens as its source, rounded up,
        ends included, as Marian does by `max-length-factor`. `None`: the length of the source does
        not limit outputs.""",
        set_by="vocabulary",
    )

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
        if self.forced_bos_id is not None and self.has_languages:
            raise ValueError(
                "`forced_bos_id` must be None with `language_codes`, which force the first token "
                f"of an output. Received: forced_bos_id={self.forced_bos_id}."
            )
