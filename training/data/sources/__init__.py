"""Parallel text from three kinds of sources behind one interface."""

from keras_transformer.training.data.sources.base import SPLITS, ParallelData

__all__ = ["SPLITS", "ParallelData", "parallel_data"]


def parallel_data(settings):
    """Opens the parallel text that a `[data]` section describes, and checks what can be checked.

    Args:
        settings: The section: a `CldrData`, `TextData` or `TfdsData` of the schema, or anything
            with their attributes.

    Returns:
        A `ParallelData`.

    Raises:
        ValueError: If the data cannot be used. One line that says which setting, file or line.
    """
    # Imported here, because TensorFlow Datasets takes a second that plain text can do without.
    if settings.source == "cldr":
        from keras_transformer.training.data.sources.cldr import open_cldr as open_source
    elif settings.source == "text":
        from keras_transformer.training.data.sources.text import open_text as open_source
    elif settings.source == "tfds":
        from keras_transformer.training.data.sources.tfds import open_tfds as open_source
    else:
        raise ValueError(
            f"`source` must be one of cldr, text, tfds. Received: source={settings.source!r}."
        )
    return open_source(settings)
