"""Configuration of a head that predicts the next token of a target, and of its searches."""

import dataclasses
from typing import Any, ClassVar, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.config.block import OptionalCount
from keras_transformer.config.heads.output import OutputHead


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetHead(OutputHead):
    """Configuration of a head that predicts the next token of a target.

    The target may have its own vocabulary.

    Args:
        **options: See `help(TargetHead)`.
    """

    accepted: ClassVar[tuple] = (*OutputHead.accepted, "language_codes", "length_factor")

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
