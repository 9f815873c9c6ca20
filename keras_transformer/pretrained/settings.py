"""Checked access to the settings of a checkpoint."""

import json
import math

from keras_transformer.checks import is_integer

# Names of Hugging Face's activations that compute what ours of another or the same name do.
ACTIVATIONS = {
    **{name: name for name in ("relu", "gelu", "silu", "tanh", "sigmoid", "relu6", "linear")},
    "swish": "silu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}


class CheckpointSettings:
    """The content of a file, with checks of what is taken from it.

    Args:
        content: A dictionary.
        path: The file, for messages.
    """

    def __init__(self, content, path):
        self.content, self.path = content, path

    def get(self, name, default=None):
        """Returns a value as it is."""
        return self.content.get(name, default)

    def choice(self, name, choices, default=None):
        """Returns the value that a table has for a name."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in choices:
            raise self.wrong(name, f"one of {', '.join(choices)}")
        return choices[value]

    def check(self, allowed):
        """Refuses values that are not in a table.

        Args:
            allowed: Dictionary from names to tuples of values; a setting that is missing has the
                first one.
        """
        for name, values in allowed.items():
            if self.get(name, values[0]) not in values:
                texts = (repr(v) if isinstance(v, str) else json.dumps(v) for v in values)
                raise self.wrong(name, " or ".join(texts))

    def flag(self, name, default=False):
        """Returns a boolean; `None` where that is the default."""
        value = self.get(name, default)
        if value is None and default is None:
            return None
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def count(self, name, default=None, least=1):
        """Returns an integer."""
        value = self.get(name, default)
        if not is_integer(value) or value < least:
            raise self.wrong(name, f"a whole number of at least {least}")
        return value

    def number(self, name, default):
        """Returns a number."""
        value = self.get(name, default)
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not math.isfinite(value)
        ):
            raise self.wrong(name, "a number")
        return float(value)

    def token(self, name, size, default=None, optional=False):
        """Returns a token id, one of `size`, also where it stands alone in a list."""
        value = self.get(name, default)
        value = default if value is None else value
        if isinstance(value, list) and len(value) == 1:
            (value,) = value
        if value is None and optional:
            return None
        if not is_integer(value) or not 0 <= value < size:
            raise self.wrong(name, f"one of the {size} token ids")
        return value

    def labels(self, name):
        """Returns the names of labels, a tuple in the order of their numbers."""
        names = self.get(name, {"0": "LABEL_0", "1": "LABEL_1"})
        right = isinstance(names, dict) and {*names} == {str(n) for n in range(len(names))}
        labels = tuple(names[str(number)] for number in range(len(names))) if right else ()
        if not all(isinstance(x, str) for x in labels) or len({*labels}) < max(2, len(labels)):
            raise self.wrong(name, "names of two labels or more, numbered from 0")
        return labels

    def wrong(self, name, rule):
        """Returns the error of a value that is not what it must be."""
        received = self.get(name)
        text = "nothing" if received is None else repr(received)[:60]
        return ValueError(f"{self.path}: `{name}` must be {rule}. Received: {text}.")
