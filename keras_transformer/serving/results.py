"""Results of any task as values of JSON."""

import dataclasses
import math
from typing import Any

import numpy as np


def as_json(result: Any) -> dict[str, Any]:
    """Returns the fields of a result, with its `text` and `score`, as values of JSON.

    Numbers that are not finite, which JSON does not have, are null.
    """
    fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return _plain({"text": result.text, "score": result.score, **fields})


def _plain(value):
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: _plain(getattr(value, field.name)) for field in fields}
    return value
