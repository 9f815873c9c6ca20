"""Descriptions of the sections of a configuration and of their keys."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Setting:
    """Description of one key of a section.

    Attributes:
        key: Name of the key.
        kind: Type and range, in words.
        default: Default as TOML, or in words.
        meaning: Purpose of the key.
    """

    key: str
    kind: str
    default: str
    meaning: str


@dataclasses.dataclass(frozen=True)
class Table:
    """Description of one section, or of one kind of `[data]`.

    Attributes:
        name: Name, such as `"training"`, `"text"` for a kind of data, or `"classification"` for the
            keys of `[model]` for a task.
        heading: Line that begins the section in a file.
        kind: Setting on which these keys depend, such as `source = "text"`; empty for keys that a
            section always has.
        about: Purpose of the section.
        settings: The `Setting`s of its keys.
    """

    name: str
    heading: str
    kind: str
    about: str
    settings: tuple
