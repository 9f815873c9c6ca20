"""Shortcuts for what Python, TensorFlow and Keras do for each of many small objects.

They change no result: what is left out has no effect on plain values, or is the same every time.
"""

import functools
import sys
import typing

PLAIN = (bool, int, float, str, type(None))


def take_shortcuts():
    """Takes them all, in this process."""
    share_one_stack()
    assign_plain_values_directly()
    if sys.version_info < (3, 12):  # later versions look these up once for each class as well
        typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)


def share_one_stack():
    """Gives every operation of a graph the same stack of Python calls.

    TensorFlow records where each was created, for the messages of errors, which takes one twentieth
    of the time.
    """
    from tensorflow.python.util import tf_stack

    stack = tf_stack.extract_stack()
    tf_stack.extract_stack = lambda stacklevel=1: stack


def assign_plain_values_directly():
    """Does not look for layers and variables in numbers, texts and `None`.

    Keras and TensorFlow examine every value that becomes an attribute of a layer, and a layer has
    dozens of such attributes, which takes one twentieth of the time.
    """
    from keras import Layer

    examined = Layer.__setattr__

    def assign(self, name, value):
        if type(value) in PLAIN:
            object.__setattr__(self, name, value)
        else:
            examined(self, name, value)

    Layer.__setattr__ = assign
