"""Kinds of data: those of this package, and those that others register."""

import importlib
import typing
from collections.abc import Sequence
from typing import Any

from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.data.sources.both_directions import BothDirections
from keras_transformer.training.settings.fields import DataSettings

# The section of each kind of data; a new kind of this package is added here.
_KINDS: dict[str, Any] = {
    "cldr": "keras_transformer.training.settings.data_sections:CldrData",
    "text": "keras_transformer.training.settings.data_sections:TextData",
    "tfds": "keras_transformer.training.settings.data_sections:TfdsData",
    "reports": "keras_transformer.training.demos.settings:ReportsData",
    "entities": "keras_transformer.training.demos.settings:EntitiesData",
    "conll": "keras_transformer.training.tasks.token_classification.settings:ConllData",
    "facts": "keras_transformer.training.demos.settings:FactsData",
    "squad": "keras_transformer.training.tasks.question_answering.settings:SquadData",
    "none": "keras_transformer.training.settings.data_sections:NoData",
    "images": "keras_transformer.training.tasks.image_classification.settings:ImageData",
    "digits": "keras_transformer.training.tasks.image_classification.settings:DigitsData",
    "stories": "keras_transformer.training.demos.settings:StoriesData",
    "babi": "keras_transformer.training.tasks.story_questions.settings:BabiData",
    "series": "keras_transformer.training.tasks.time_series.settings:SeriesData",
    "speech_files": "keras_transformer.training.tasks.speech_recognition.settings:SpeechFilesData",
    "tfds_speech": "keras_transformer.training.tasks.speech_recognition.settings:TfdsSpeechData",
    "arithmetic": "keras_transformer.training.demos.settings:ArithmeticData",
    "morse_demo": "keras_transformer.training.demos.settings:MorseDemoData",
    "spoken_demo": "keras_transformer.training.demos.settings:SpokenDemoData",
}


def data_kinds() -> dict[str, type[DataSettings]]:
    """Returns the sections of all kinds of data, by the name that is their `source`."""
    for name, place in _KINDS.items():
        if isinstance(place, str):
            module, _, section = place.partition(":")
            _KINDS[name] = getattr(importlib.import_module(module), section)
    return dict(_KINDS)


def register_source(section: type[DataSettings]) -> None:
    """Makes a kind of data available to configurations.

    Args:
        section: The kind of `[data]`: a subclass of `TokenData`, or of `DataSettings` with a
            `size_of_batch`, whose key `source` has one allowed value, the name, and whose method
            `open` returns a `Source`. Register it before a configuration that names it is read.

    Raises:
        TypeError: If `section` is no such class.
        ValueError: If another kind of data has the same name.

    Example:
        >>> from typing import ClassVar, Literal
        >>> from pydantic import Field
        >>> from keras_transformer.training import MemoryData, TokenData, register_source
        >>> from keras_transformer.training.settings.sources import data_kinds
        >>> class Rhymes(TokenData):
        ...     columns: ClassVar = ("text",)
        ...     source: Literal["rhymes"] = Field(description="The kind of data.")
        ...     def open(self, columns):
        ...         return MemoryData({"train": [("cat, hat",), ("sun, fun",)]}, "rhymes")
        >>> register_source(Rhymes)
        >>> data_kinds()["rhymes"].columns
        ('text',)
    """
    field = getattr(section, "model_fields", {}).get("source")
    names = typing.get_args(field.annotation) if field else ()
    is_section = isinstance(section, type) and issubclass(section, DataSettings)
    if not is_section or len(names) != 1 or not isinstance(names[0], str):
        raise TypeError(
            "`section` must be a subclass of `DataSettings` whose key `source` has one allowed "
            f'value: source: Literal["..."]. Received: {section!r}.'
        )
    if "size_of_batch" not in {*dir(section), *section.model_fields}:
        raise TypeError(
            "`section` must have a `size_of_batch`, as a `TokenData` has, the base of data for "
            f"texts. Received: {section!r}."
        )
    known = data_kinds().get(names[0])
    places = [(kind.__module__, kind.__qualname__) for kind in (known, section) if kind]
    if known is not None and places[0] != places[1]:
        raise ValueError(f"`source` must have a unique name. Received: {names[0]!r}.")
    _KINDS[names[0]] = section  # perhaps defined again, as in a cell of a notebook


def open_source(
    settings: Any, columns: Sequence[str] = ("source", "target"), check: bool = True
) -> Source:
    """Opens the data that a `[data]` section describes, and checks them.

    Args:
        settings: The section: one of the `data_kinds`, or an object with its attributes.
        columns: Names of the columns of text files: see `Task`. Other kinds of data have fixed
            columns.
        check: Whether to read text files once, so that errors are found now rather than later.

    Returns:
        A `Source`.

    Raises:
        ValueError: If the data cannot be used. One line that names the setting, file or line.
    """
    kinds = data_kinds()
    if settings.source not in kinds:
        raise ValueError(
            f"`source` must be one of {', '.join(kinds)}. Received: source={settings.source!r}."
        )
    source = kinds[settings.source].open(settings, columns)
    if getattr(settings, "bidirectional", False):
        source = BothDirections(source)
    if check:
        source.check()
    return source
