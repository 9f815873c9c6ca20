"""Arguments of layers that are fields of a `BlockConfig`, as `help` shows them."""

import dataclasses
import inspect
import re

from keras_transformer.config.block import BlockConfig

# The entry `**arguments` in a docstring, with the lines that continue it.
REST = re.compile(r"^( *)\*\*arguments: .*\n(?:\1 +.*\n)*", re.MULTILINE)
KERAS = "**kwargs: `name`, `dtype` and `trainable` as in every Keras layer.\n"


def with_fields(*left_out):
    """Returns a decorator that lists the fields of a `BlockConfig` among a layer's arguments.

    A layer takes them as `**arguments`. The decorator writes each of them into the docstring, as
    the configuration describes it, and into the signature, with its default.

    Args:
        *left_out: Names of fields that the layer does not have.
    """

    def decorate(layer):
        own = inspect.signature(layer.__init__).parameters
        named = [p for p in own.values() if p.kind is not p.VAR_KEYWORD]
        fields = [
            field
            for field in dataclasses.fields(BlockConfig)
            if field.name not in (*own, *left_out)
        ]
        by_name = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
            for field in fields
        ]
        rest = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)
        layer.__init__.__signature__ = inspect.Signature([*named, *by_name, rest])
        if layer.__doc__:  # Python leaves docstrings out with -OO
            entries = _described()
            listed = "".join(entries[field.name] for field in fields) + KERAS
            layer.__doc__ = REST.sub(
                lambda match: re.sub("^", match[1], listed.rstrip("\n"), flags=re.MULTILINE) + "\n",
                layer.__doc__,
            )
        return layer

    return decorate


def _described():
    """The lines of the docstring of `BlockConfig` about each field, by its name."""
    text = inspect.getdoc(BlockConfig).partition("\nArgs:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^    (\w+)(: .*(?:\n {5,}.*)*)", text, re.MULTILINE)
    return {
        name: re.sub(r"^    ", "", f"    {name}{body}\n", flags=re.MULTILINE)
        for name, body in entries
    }
