"""Sources of data of several kinds, with one interface."""

import importlib

from keras_transformer.training.data.sources.base import SPLITS, Source
from keras_transformer.training.data.sources.both_directions import BothDirections

__all__ = ["SPLITS", "Source", "open_source"]

# The module of each kind of data, and its function that opens a `[data]` section.
SOURCES = {
    "cldr": ("cldr", "open_cldr"),
    "text": ("text", "open_text"),
    "tfds": ("tfds", "open_tfds"),
    "reports": ("reports", "open_reports"),
    "images": ("images", "open_images"),
    "digits": ("images", "open_digits"),
    "series": ("series", "open_series"),
    "entities": ("entities", "open_entities"),
    "conll": ("conll", "open_conll"),
    "facts": ("facts", "open_facts"),
    "squad": ("squad", "open_squad"),
    "speech_files": ("speech_files", "open_speech_files"),
    "tfds_speech": ("tfds_speech", "open_tfds_speech"),
    "morse_demo": ("morse", "open_morse_demo"),
    "spoken_demo": ("spoken", "open_spoken_demo"),
    "none": ("none", "open_none"),
}


def open_source(settings, columns=("source", "target"), check=True) -> Source:
    """Opens the data that a `[data]` section describes, and checks them.

    Args:
        settings: The section: one of the schema's `DATA_KINDS`, or an object with its attributes.
        columns: Names of the columns of text files: see `Task`. Other kinds of data have fixed
            columns.
        check: Whether to read text files once, so that errors are found now rather than later.

    Returns:
        A `Source`.

    Raises:
        ValueError: If the data cannot be used. One line that names the setting, file or line.
    """
    if settings.source not in SOURCES:
        raise ValueError(
            f"`source` must be one of {', '.join(SOURCES)}. Received: source={settings.source!r}."
        )
    module, function = SOURCES[settings.source]
    # Imported here, because TensorFlow Datasets takes a second to import and text does not need it.
    opened = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    source = opened(settings, columns) if settings.source == "text" else opened(settings)
    if getattr(settings, "bidirectional", False):
        source = BothDirections(source)
    if getattr(settings, "speeds", [1.0]) != [1.0]:
        # Imported here, because it needs TensorFlow.
        from keras_transformer.training.tasks.speech_recognition.speed_copies import SpeedCopies

        source = SpeedCopies(source, settings.speeds)
    if check:
        source.check()
    return source
