"""Error of an export."""


class ExportError(ValueError):
    """Raised if an export is impossible, or was found to be wrong and was not kept."""
