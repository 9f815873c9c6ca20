"""Error of an export."""


class ExportError(ValueError):
    """Raised if an export is impossible, or if its check failed, so that it was not kept."""
