"""Base class of the configurations of parts, whose fields are options with checks."""

import dataclasses
from typing import Any, TypeVar

from keras_transformer.checks import check_fields
from keras_transformer.config.arguments import options_of
from keras_transformer.variants import plain, restored

Part = TypeVar("Part", bound="PartConfig")

# Options that may be objects, and what their objects are.
VARIANTS = {"position": "position", "attention_position": "position", "score": "score"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartConfig:
    """A frozen dataclass of options, which are checked and can be converted to plain values.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """

    def __post_init__(self) -> None:
        for name in VARIANTS:
            if hasattr(self, name):  # from a file
                value = restored(VARIANTS[name], getattr(self, name))
                object.__setattr__(self, name, value)
        check_fields(self)

    def check_with(self, config: Any) -> None:
        """Checks options against the other parts of a `ModelConfig`.

        Raises:
            ValueError: If an option does not fit the other parts.
        """

    def options(self) -> dict[str, dataclasses.Field]:
        """Returns the fields of the options that have an effect, by name."""
        return options_of(type(self))

    @classmethod
    def from_flat(cls: type[Part], **options: Any) -> Part:
        """Returns the configuration with these options."""
        return cls(**options)

    def to_flat(self) -> dict[str, Any]:
        """Returns the options by name: plain values, positions and scores."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls: type[Part], fields: dict[str, Any]) -> Part:
        """Returns the configuration from a result of `to_dict`.

        Raises:
            ValueError: If an option is unknown.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted({*fields} - {*known})
        if unknown:
            raise ValueError(
                f"`{cls.__name__}` has the options {', '.join(known)}. "
                f"Received: {', '.join(unknown)}."
            )
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """Returns the options as a dictionary of plain values."""
        return plain(dataclasses.asdict(self))
