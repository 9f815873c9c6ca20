"""Configuration of a head whose tokens searches put together to outputs."""

import dataclasses
from typing import Any

from keras_transformer.checks import is_integer
from keras_transformer.config.arguments import documented, option
from keras_transformer.config.heads.next_token import NextTokenHead


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneratingHead(NextTokenHead):
    """Configuration of a head that predicts the tokens of an output.

    Args:
        **options: See `help(GeneratingHead)`.
    """

    end_ids: tuple = option(
        (),
        """Further token ids that end an output, such as the end of a turn in a conversation. The
        output contains `eos_id` in their place.""",
        set_by="vocabulary",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._freeze("end_ids")

    def _freeze(self, *names):
        """Checks options that are lists of ids and makes them tuples; in JSON they are lists."""
        for name in names:
            ids = getattr(self, name)
            if not isinstance(ids, tuple | list):
                raise TypeError(f"`{name}` must be a list of ids. Received: {name}={ids!r}.")
            object.__setattr__(self, name, tuple(ids))

    def check_with(self, config: Any) -> None:  # noqa: D102
        super().check_with(config)
        size, tokens, ids = config.output_size, config.tokens, self.end_ids
        if not all(is_integer(token) and 0 <= token < size for token in ids):
            raise ValueError(f"`end_ids` must be ids of the {size} tokens. Received: {ids}.")
        if len({*ids}) < len(ids) or {tokens.pad_id, tokens.eos_id} & {*ids}:
            raise ValueError(
                "`end_ids` must be distinct, without `pad_id` and `eos_id`. Received: "
                f"end_ids={ids}, pad_id={tokens.pad_id}, eos_id={tokens.eos_id}."
            )
