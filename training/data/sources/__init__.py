"""Data from three kinds of sources behind one interface."""

import importlib

from keras_transformer.training.data.sources.base import SPLITS, Source

# Where the function is that opens each kind of data whose columns are always the same.
OPENERS = {
    "cldr": "cldr:open_cldr",
    "tfds": "tfds:open_tfds",
    "entities": "entities:open_entities",
    "conll": "conll:open_conll",
    "facts": "facts:open_facts",
    "squad": "squad:open_squad",
}

__all__ = ["SPLITS", "Source", "open_source"]


def open_source(settings, columns=("source", "target")):
    """Opens the data that a `[data]` section describes, and checks what can be checked.

    Args:
        settings: The section: a `CldrData`, `TextData` or `TfdsData` of the schema, or anything
            with their attributes.
        columns: Names of the texts of an example: see `Task`.

    Returns:
        A `Source`.

    Raises:
        ValueError: If the data cannot be used. One line that says which setting, file or line.
    """
    # Imported here, because TensorFlow Datasets takes a second that plain text can do without.
    if settings.source in OPENERS:
        module, name = OPENERS[settings.source].split(":")
        module = importlib.import_module(f"keras_transformer.training.data.sources.{module}")
        return getattr(module, name)(settings)
    if settings.source == "text":
        from keras_transformer.training.data.sources.text import open_text

        return open_text(settings, columns)
    raise ValueError(
        f"`source` must be one of {', '.join(['text', *OPENERS])}. "
        f"Received: source={settings.source!r}."
    )
