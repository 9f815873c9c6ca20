"""Checked access to the settings of a checkpoint."""

import json
from typing import Any

from keras_transformer.checks import is_finite, is_integer

# From the names of Hugging Face's activations to our names for the same functions.
ACTIVATIONS = {
    **{name: name for name in ("relu", "gelu", "silu", "tanh", "sigmoid", "relu6", "linear")},
    "swish": "silu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}


class CheckpointSettings:
    """The content of a settings file, with checks of every value that is read.

    Args:
        content: A dictionary.
        path: The file, for messages.
    """

    def __init__(self, content, path):
        self.content, self.path = content, path

    def get(self, name, default=None) -> Any:
        """Returns a value without checks."""
        return self.content.get(name, default)

    def choice(self, name, choices, default=None) -> Any:
        """Returns the entry of the dictionary `choices` for the value of a setting."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in choices:
            raise self.wrong(name, f"one of {', '.join(choices)}")
        return choices[value]

    def check(self, allowed) -> None:
        """Refuses values of settings that are not allowed.

        Args:
            allowed: Dictionary from names to tuples of values, of which the first is the value of a
                missing setting.
        """
        for name, values in allowed.items():
            if self.get(name, values[0]) not in values:
                texts = (repr(v) if isinstance(v, str) else json.dumps(v) for v in values)
                raise self.wrong(name, " or ".join(texts))

    def architecture(self, known, default=None) -> str:
        """Returns the name of the one class in `architectures`.

        Args:
            known: Names of classes.
            default: The class if the setting is missing. `None`: the first known one.
        """
        named = self.get("architectures") or [default or known[0]]
        if not isinstance(named, list) or len(named) != 1 or named[0] not in known:
            raise self.wrong("architectures", f"one of {', '.join(known)}")
        return named[0]

    def section(self, name, kind) -> "CheckpointSettings":
        """Returns the settings under a key, whose `type` must be `kind` or missing."""
        value = self.get(name)
        if not isinstance(value, dict) or value.get("type", kind) != kind:
            raise self.wrong(name, f"of the type {kind}")
        return CheckpointSettings(value, self.path)

    def flag(self, name, default=False) -> bool | None:
        """Returns a boolean, or `None` if that is the default.

        `null` counts as missing, unless that would mean true.
        """
        value = self.get(name, default)
        if value is None and not default:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def count(self, name, default=None, least=1) -> int:
        """Returns an integer of at least `least`."""
        value = self.get(name, default)
        if not is_integer(value) or value < least:
            raise self.wrong(name, f"a whole number of at least {least}")
        return value

    def number(self, name, default) -> float:
        """Returns a finite number."""
        value = self.get(name, default)
        if not is_finite(value):
            raise self.wrong(name, "a number")
        return float(value)

    def token(self, name, size, default=None, optional=False) -> Any:
        """Returns a token id below `size`; in the file, it may be the only item of a list."""
        value = self.get(name, default)
        value = default if value is None else value
        if isinstance(value, list) and len(value) == 1:
            (value,) = value
        if value is None and optional:
            return None
        if value is None or not is_integer(value) or not 0 <= value < size:
            raise self.wrong(name, f"one of the {size} token ids")
        return value

    def tokens(self, name, size) -> list[int]:
        """Returns the token ids below `size` of a setting, one or a list; empty if it is missing.

        Raises:
            ValueError: If it is neither.
        """
        value = self.get(name)
        ids = value if isinstance(value, list) else [] if value is None else [value]
        if value == [] or not all(is_integer(token) and 0 <= token < size for token in ids):
            raise self.wrong(name, f"one or more of the {size} token ids")
        return ids

    @property
    def num_labels(self) -> int | None:
        """Number of names in `id2label`; `None` if there is no such table."""
        names = self.get("id2label")
        return len(names) if isinstance(names, dict) else None

    def check_one_label(self, item) -> None:
        """Refuses heads that do not choose one of several labels, by the kind that they are.

        Args:
            item: Noun for what is classified, such as `"text"`.

        Raises:
            ValueError: If it is another kind; the error says which.
        """
        problem, kind = self.get("problem_type"), None
        if problem == "multi_label_classification":
            kind = f"a classifier with several labels per {item} (`problem_type`)"
        elif problem == "regression":
            kind = f"a model of numbers, not of labels (`problem_type` is {problem!r})"
        elif self.num_labels == 1:
            kind = "a model with one logit (`id2label` has one name)"
        if kind is not None:
            raise ValueError(
                f"{self.path}: the checkpoint is {kind}, which is not supported. Supported are "
                f"classifiers that choose one of several labels for each {item}."
            )
        self.check({"problem_type": (None, "single_label_classification")})

    def labels(self, name) -> tuple[str, ...]:
        """Returns the tuple of the names of labels, in the order of their numbers."""
        names = self.get(name, {"0": "LABEL_0", "1": "LABEL_1"})
        valid = isinstance(names, dict) and {*names} == {str(n) for n in range(len(names))}
        labels = tuple(names[str(number)] for number in range(len(names))) if valid else ()
        if not all(isinstance(x, str) for x in labels) or len({*labels}) < max(2, len(labels)):
            raise self.wrong(name, "names of two labels or more, numbered from 0")
        return labels

    def wrong(self, name, rule) -> ValueError:
        """Returns the error for a value that breaks a rule."""
        received = self.get(name)
        text = "nothing" if received is None else repr(received)[:60]
        return ValueError(f"{self.path}: `{name}` must be {rule}. Received: {text}.")
