"""A folder for Marian, which only Marian opens."""

import pathlib
from typing import Any

from keras_transformer.checkpoint_hints import quoted
from keras_transformer.opening.forms import Form, model_kinds
from keras_transformer.tasks.answering import Answering


class MarianForm(Form):
    """A folder for Marian."""

    name, title = "marian", "a folder for Marian"
    is_opened = False

    @classmethod
    def fits(cls, path: pathlib.Path) -> bool:  # noqa: D102
        return (path / "decoder.yml").is_file()

    @classmethod
    def open(cls, path: Any, **arguments: Any) -> Answering:
        """Raises a `ValueError` that names the command that opens it."""
        raise ValueError(
            f"{path} is a folder for Marian: `marian-decoder -c {quoted(path / 'decoder.yml')}` "
            f"opens it. MODEL is {model_kinds()}."
        )
