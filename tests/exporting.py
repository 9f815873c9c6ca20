"""Arguments of an exporter from a dictionary that has its options and its data."""

import dataclasses


def asked(kind, *options, **arguments):
    """Returns `options`, a value of the class `kind`, and the other `arguments` as they are."""
    names = [field.name for field in dataclasses.fields(kind)]
    own = {name: arguments.pop(name) for name in names if name in arguments}
    return {"options": kind(*options, **own), **arguments}
