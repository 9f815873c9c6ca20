"""The base of every section of a configuration, and the types that several of them use."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

Positive = Annotated[int, Field(gt=0)]
FROM_DATA = {"default_in_words": "follows from the data"}  # `derived.py` has the rules
Rate = Annotated[float, Field(ge=0, lt=1)]
# `toml.py` makes whatever has this format absolute.
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
    """One table of the configuration file."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=()
    )

    def received(self, key, value=None, name=None, default="the default"):
        """Returns `key=value` for an error, and that it is a default if nobody has written it.

        Args:
            key: Name of the key.
            value: Its value; `None`: that of this section.
            name: What to call the key instead.
            default: What a value that is left out is.
        """
        text = f"{name or key}={getattr(self, key) if value is None else value}"
        return text if key in self.model_fields_set else f"{text} ({default})"


class DataSettings(Section):
    """What all kinds of `[data]` have in common."""

    may_change: ClassVar = ("data_dir", "store")  # in a run that goes on
    columns: ClassVar = ()  # what it has

    store: PathText | None = Field(
        None,
        description="Folder that keeps the encoded examples; several runs may share it. Default: "
        "`store` in the folder of the run.",
    )

    def check_columns(self, task):
        """Raises a `ValueError` unless the data have the columns of a `Task`."""
        if task.columns != self.columns:
            raise ValueError(
                f'`data.source = "{self.source}"` has {" and ".join(self.columns)}: {task.name} '
                f"needs {' and '.join(task.columns)}, {sources_for(task)}."
            )


def sources_for(task):
    """Returns the kinds of data that a task can have, to be named in an error."""
    if task.texts:
        return '`data.source = "text"`'
    return " or ".join(f'`data.source = "{kind}"`' for kind in task.sources)
