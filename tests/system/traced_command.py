"""Runs a command; writes which files execute functions, which hold the beam, and all modules.

    python traced_command.py RESULT SIZE ARGUMENTS...

A function counts from the call of the command on; bodies of modules and classes do not count, nor
what runs while a module is imported. A file holds the beam if a local variable of one of these
functions is the `Beam`, or a number with the value of SIZE, which no other number should have.
"""

import inspect
import json
import os
import pathlib
import sys

import keras_transformer
from keras_transformer.cli.main import cli

ROOT = pathlib.Path(keras_transformer.__file__).resolve().parents[1]
PRODUCT = ("keras_transformer", "training", "export")
executed, beams, sizes, names = set(), set(), set(), {}
importing = 0


def name_of(code):
    """Returns the path of a function's file in the product, or `None`."""
    if code not in names:
        path = pathlib.Path(os.path.realpath(code.co_filename))
        inside = any(path.is_relative_to(ROOT / name) for name in PRODUCT)
        own = inside and bool(code.co_flags & inspect.CO_OPTIMIZED)  # no body of a class
        names[code] = path.relative_to(ROOT).as_posix() if own else None
    return names[code]


def trace(frame, event, argument):
    """Notes the file of a function that is called or returns."""
    global importing
    if event not in ("call", "return"):
        return
    if frame.f_code.co_name == "<module>":
        importing += 1 if event == "call" else -1
        return
    name = name_of(frame.f_code)
    if name is None or importing:
        return
    executed.add(name)
    if event == "return":
        values = list(frame.f_locals.values())
        if any(type(value).__name__ == "Beam" for value in values):
            beams.add(name)
        if any(type(value) is int and value == size for value in values):
            sizes.add(name)


result, size, *arguments = sys.argv[1:]
size = int(size)
sys.setprofile(trace)
try:
    cli(arguments, standalone_mode=False)
finally:
    sys.setprofile(None)
modules = {name for name in sys.modules if name.partition(".")[0] == "keras_transformer"}
files = {"executed": executed, "beams": beams, "sizes": sizes, "modules": modules}
pathlib.Path(result).write_text(json.dumps({key: sorted(files[key]) for key in files}))
