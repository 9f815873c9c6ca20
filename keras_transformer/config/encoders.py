"""`EncoderChoice`, an encoder that consists of blocks or is of another kind."""

import dataclasses
import typing
from typing import Any

from keras_transformer.checks import check_choice
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER, StackConfig

TRANSFORMER = "transformer"


@dataclasses.dataclass(frozen=True)
class EncoderChoice(Part):
    """Description of an encoder: blocks, `"transformer"`, or one of another kind.

    Attributes:
        other: Default configuration of the encoder of another kind. Its option `kind`, a `Literal`,
            names the kinds.
    """

    default: Any = ENCODER.default
    leave_out: tuple = ENCODER.leave_out
    more_kinds: tuple = (TRANSFORMER,)
    other: Any = None

    def options(self, base=None) -> dict[str, dataclasses.Field]:  # noqa: D102
        if base is None:
            return {**super().options(self.other), **super().options(self.default)}
        return super().options(base)

    def kind_option(self) -> dataclasses.Field:  # noqa: D102
        return self.other.options()[self.kind]

    def accepted(self) -> Any:  # noqa: D102
        return super().accepted() | type(self.other) | str

    def begin(self, given) -> tuple[Any, dict[str, Any]]:  # noqa: D102
        base, table = super().begin(given)
        if self.kind not in table:
            return base, table
        kind = table[self.kind]
        kinds = typing.get_args(self.kind_option().type)
        check_choice("encoder", kind, (*self.more_kinds, *kinds))
        if kind in self.more_kinds:
            return base, {name: value for name, value in table.items() if name != self.kind}
        return type(self.other).from_flat(**{self.kind: kind}), table

    def from_dict(self, fields) -> Any:  # noqa: D102
        return (type(self.other) if self.kind in fields else StackConfig).from_dict(fields)
