"""Data from several kinds of sources behind one interface."""

from keras_transformer.training.data.sources.base import SPLITS, Source

__all__ = ["SPLITS", "Source", "open_source"]


def open_source(settings, columns=("source", "target")):
    """Opens the data that a `[data]` section describes, and checks what can be checked.

    Args:
        settings: The section: one of the schema's `DATA_KINDS`, or anything with its attributes.
        columns: Names of the texts of an example: see `Task`.

    Returns:
        A `Source`.

    Raises:
        ValueError: If the data cannot be used. One line that says which setting, file or line.
    """
    # Imported here, because TensorFlow Datasets takes a second that plain text can do without.
    if settings.source == "cldr":
        from keras_transformer.training.data.sources.cldr import open_cldr

        return open_cldr(settings)
    if settings.source == "text":
        from keras_transformer.training.data.sources.text import open_text

        return open_text(settings, columns)
    if settings.source == "tfds":
        from keras_transformer.training.data.sources.tfds import open_tfds

        return open_tfds(settings)
    if settings.source == "reports":
        from keras_transformer.training.data.sources.reports import open_reports

        return open_reports(settings)
    raise ValueError(
        f"`source` must be one of cldr, text, tfds, reports. Received: source={settings.source!r}."
    )
