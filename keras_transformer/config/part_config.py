"""Base class of the configurations of parts, whose fields are options with checks."""

import dataclasses
from typing import Any, TypeVar

from keras_transformer.arguments import options_of
from keras_transformer.checks import check_fields
from keras_transformer.variants import make_fields, plain

Part = TypeVar("Part", bound="PartConfig")


class OldConfigurationError(ValueError):
    """Error for a configuration of an earlier version, whose parts or options were others."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartConfig:
    """A frozen dataclass of options, which are checked and can be converted to plain values.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """

    def __post_init__(self) -> None:
        make_fields(self)
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

    def with_options(self: Part, **options: Any) -> Part:
        """Returns the configuration with other values of some options."""
        return type(self).from_flat(**{**self.to_flat(), **options})

    def to_flat(self) -> dict[str, Any]:
        """Returns the options by name: plain values, positions and scores."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls: type[Part], fields: dict[str, Any]) -> Part:
        """Returns the configuration from a result of `to_dict`.

        Raises:
            OldConfigurationError: If an option is unknown.
        """
        unknown = sorted({*fields} - {field.name for field in dataclasses.fields(cls)})
        if unknown:
            raise OldConfigurationError(
                f"has options of another version, {', '.join(unknown)}: train the model again, or "
                "convert its checkpoint again."
            )
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """Returns the options as a dictionary of plain values."""
        return plain(PartConfig.to_flat(self))
