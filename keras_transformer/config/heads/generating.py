"""Configuration of a head whose tokens searches put together to outputs."""

import dataclasses
from typing import Any, ClassVar, TypeVar

from keras_transformer.arguments import documented, options_of
from keras_transformer.config.heads.next_token import NextTokenHead
from keras_transformer.config.rules import OutputRules

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
