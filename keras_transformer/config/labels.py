"""The labels of a model that classifies: part of its configuration."""


class Labelled:
    """A `ModelConfig` with a field `labels`."""

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "labels", _checked(self.labels))

    @property
    def num_labels(self):
        """Number of classes C."""
        return len(self.labels)


def _checked(value):
    """Returns labels as a tuple; JSON knows lists only.

    Raises:
        ValueError: If they are not at least two strings, each there once.
    """
    labels = tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(set(labels)) < 2 or not all(isinstance(label, str) for label in labels):
        raise ValueError(
            f"`labels` must be at least two different strings. Received: labels={value!r}."
        )
    if len(set(labels)) < len(labels):
        raise ValueError(f"`labels` must each be there once. Received: labels={value!r}.")
    return labels
