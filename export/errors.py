"""The error of an export."""


class ExportError(ValueError):
    """An export that is not possible, or that came out wrong and was not kept."""
