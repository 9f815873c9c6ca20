"""The settings in a file of Hugging Face's, with checks of what is taken from them."""

import math

from keras_transformer.checks import is_integer

# Names of Hugging Face's activations that compute what ours of another or the same name do.
ACTIVATIONS = {
    **{name: name for name in ("relu", "gelu", "silu", "tanh", "sigmoid", "relu6", "linear")},
    "swish": "silu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}


class Settings:
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

    def flag(self, name, default=False):
        """Returns a boolean."""
        value = self.get(name, default)
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

    def wrong(self, name, rule):
        """Returns the error of a value that is not what it must be."""
        received = self.get(name)
        text = "nothing" if received is None else repr(received)[:60]
        return ValueError(f"{self.path}: `{name}` must be {rule}. Received: {text}.")
