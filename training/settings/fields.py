"""The base of every section of a configuration, and the types that several of them use."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

Positive = Annotated[int, Field(gt=0)]
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
