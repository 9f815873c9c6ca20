"""Options of configurations, declared once: default, help and checks are metadata of a field.

The docstrings and signatures of configurations and layers, the schema of the settings and the pages
of the documentation are made of them.
"""

import dataclasses
import inspect
import textwrap

# Begins the entry of a docstring that the options take the place of, the last one of `Args`.
PLACEHOLDER = "**options: "
KERAS = "**kwargs: `name`, `dtype` and `trainable` as in every Keras layer."


def option(default, description, set_by=None, statistic=False):
    """Returns a dataclass field with a default and a description, which is its metadata `"help"`.

    Args:
        default: The default, immutable.
        description: What the option means, in whole sentences. `None:` begins the sentence about
            what `None` stands for.
        set_by: `"vocabulary"` or `"data"`, which decide an option that is no setting of a training.
        statistic: Whether weights fit whatever the data have decided.
    """
    metadata = {"help": " ".join(description.split()), "set_by": set_by, "statistic": statistic}
    return dataclasses.field(default=default, metadata=metadata)


def options_of(*configurations, leave_out=()):
    """Returns the fields of dataclasses that have a description, by name.

    Args:
        *configurations: The dataclasses, in the order of their options.
        leave_out: Names of options to leave out.
    """
    fields = [field for config in configurations for field in dataclasses.fields(config)]
    return {
        field.name: field
        for field in fields
        if "help" in field.metadata and field.name not in leave_out
    }


def documented(config):
    """Writes the options of a dataclass into its docstring. A class decorator."""
    own = {name: field for name, field in options_of(config).items() if name in vars(config)}
    return _described(config, _entries(own))


def with_options(options):
    """Returns a class decorator that lists options among the arguments of a layer.

    The layer takes them as `**options`. They are written into its docstring and its signature, but
    for those that its constructor names.

    Args:
        options: What `options_of` returned.
    """

    def decorate(layer):
        own = inspect.signature(layer.__init__).parameters
        named = [p for p in own.values() if p.kind is not p.VAR_KEYWORD]
        listed = {name: field for name, field in options.items() if name not in own}
        by_name = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
            for name, field in listed.items()
        ]
        rest = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)
        layer.__init__.__signature__ = inspect.Signature([*named, *by_name, rest])
        return _described(layer, [*_entries(listed), KERAS])

    return decorate


def _entries(options):
    """The entries of `Args` about options, of one or more lines each."""
    return [
        textwrap.fill(f"{name}: {field.metadata['help']}", 92, subsequent_indent="    ")
        for name, field in options.items()
    ]


def _described(described, entries):
    """A class with entries in the place of the last one of `Args` in its docstring."""
    if described.__doc__:  # Python leaves docstrings out with -OO
        before, placeholder, after = described.__doc__.partition(PLACEHOLDER)
        if placeholder:
            indent = before[len(before.rstrip(" ")) :]
            _, blank, rest = after.partition("\n\n")
            listed = textwrap.indent("\n".join(entries), indent).removeprefix(indent)
            described.__doc__ = before + listed + blank + rest
    return described
