"""Options of an export that only models with a search have."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """Options of a format for models that generate text: each field has a default."""

    def refuse(self, task):
        """Raises a `ValueError` if an option is given, for a model of a task without searches."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                raise ValueError(
                    f"`{field.name}` has no effect on a model for {task}. "
                    f"Received: {field.name}={value!r}."
                )
