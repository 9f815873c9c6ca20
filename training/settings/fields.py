"""Base class of the sections of a configuration, and types that several sections use."""

import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from keras_transformer.training.data.batching import BUCKETS

if TYPE_CHECKING:
    from keras_transformer.training.data.sources.base import Source

Positive = Annotated[int, Field(gt=0)]
FROM_DATA: dict[str, Any] = {"default_in_words": "depends on the data"}  # see `derived.py`
Rate = Annotated[float, Field(ge=0, lt=1)]
# `toml.py` makes values of this format absolute paths.
PathText = Annotated[str, Field(json_schema_extra={"format": "path"})]


def _file_list(value):
    files = [value] if isinstance(value, str) else value
    if not (isinstance(files, list) and files and all(isinstance(file, str) for file in files)):
        raise ValueError("must be the name of a file, or a list of such names")
    return files


Files = Annotated[
    list[str],
    BeforeValidator(_file_list),
    WithJsonSchema({"type": "file or list of files", "format": "path"}),
]


class Section(BaseModel):
    """Base of a table of the configuration file."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=()
    )

    def received(
        self, key: str, value: Any = None, name: str | None = None, default: str = "the default"
    ) -> str:
        """Returns `key=value` for an error, with a note if the value is a default.

        Args:
            key: Name of the key.
            value: Its value. `None`: the value in this section.
            name: Name of the key in the message. `None`: `key`.
            default: Note for a value that was not given.
        """
        text = f"{name or key}={getattr(self, key) if value is None else value}"
        return text if key in self.model_fields_set else f"{text} ({default})"


def section_in(kind) -> type[Section] | None:
    """Returns the `Section` in the type of a key that holds a table; `None` for other keys.

    Args:
        kind: A type, such as `LoraSettings | None`.
    """
    if isinstance(kind, type) and issubclass(kind, Section):
        return kind
    return next(filter(None, map(section_in, typing.get_args(kind))), None)


Buckets = Annotated[
    Positive,
    Field(
        description="Maximum number of widths of the batches of an epoch. With fewer, batches "
        "contain more padding, but XLA compiles an update for fewer shapes.",
    ),
]


class DataSettings(Section):
    """Base of all kinds of `[data]`."""

    may_change: ClassVar = ("data_dir", "store")  # when a run resumes
    columns: ClassVar[tuple[str, ...]] = ()  # names of the columns of the data

    if TYPE_CHECKING:
        source: str  # a `Literal` in each kind

    store: PathText | None = Field(
        None,
        description="Folder for the encoded examples, which several runs may share. Default: "
        "`store` in the folder of the run.",
    )

    def open(self, columns: Sequence[str]) -> "Source":
        """Returns the `Source` of these data, unchecked.

        Args:
            columns: Names of the columns of text files: see `Task`. Other kinds of data have fixed
                columns.

        Raises:
            ValueError: If the data cannot be used. One line that names the setting, file or line.
        """
        raise NotImplementedError

    @property
    def widths(self) -> int:
        """Maximum number of widths of the batches; a setting if the examples have lengths."""
        return getattr(self, "buckets", BUCKETS)

    def check_columns(self, task: Any) -> None:
        """Raises a `ValueError` unless the data have the columns of a `Task`."""
        if task.columns != self.columns:
            raise ValueError(
                f'`data.source = "{self.source}"` provides {" and ".join(self.columns)}: '
                f"{task.name} needs {' and '.join(task.columns)}, {sources_for(task)}."
            )


def sources_for(task) -> str:
    """Returns the kinds of data that suit a task, for an error."""
    if not task.sources:
        return '`data.source = "text"`'
    return " or ".join(f'`data.source = "{kind}"`' for kind in task.sources)
