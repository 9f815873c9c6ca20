"""The settings in a file of Hugging Face's, with checks of what is taken from them."""

import json
import math

from keras_transformer.checks import is_integer

EPSILON = 1e-5  # of every layer normalisation: PyTorch's default, which no configuration changes
# Settings of BART that Hugging Face's Marian classes do not read, with the values for what they
# compute: a norm after each sublayer, no other norms, sinusoids.
NOT_READ = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "layer_norm_eps": EPSILON,
    "do_blenderbot_90_layernorm": False,
}
MARIAN = "Marian"  # begins the names of these classes


def as_marian(settings):
    """Returns what Hugging Face's Marian classes read of a `config.json`, and notes on the rest.

    They are the classes of `model_type` "marian". Only where `architectures` names others alone,
    such as BART's, do the settings of BART in the file count.

    Args:
        settings: The `Settings` of the file.

    Returns:
        `Settings`, and a list of strings, one for each setting that has no effect but should.
    """
    named = settings.get("architectures")
    if isinstance(named, list) and named and not any(str(n).startswith(MARIAN) for n in named):
        return settings, []
    notes = [
        f"`{name}` = {json.dumps(settings.get(name))} has no effect: Hugging Face's Marian models "
        "do not read it"
        for name, value in NOT_READ.items()
        if settings.get(name, value) != value
    ]
    return Settings({**settings.content, **NOT_READ}, settings.path), notes


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
