"""Mixers, which read the other positions in a block, as values: to add one, add a file here.

Its class has a `kind` and a line about it, `about`. `make stubs` then lists it where users look.
"""

from keras_transformer.mixers.attention import (
    AttentionHeads,
    CrossAttention,
    check_given_once,
    completed,
    has_option,
    in_table,
    overridden,
    shared_options,
    short_options,
)
from keras_transformer.mixers.memory import MemoryReader
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.same_position import SamePosition
from keras_transformer.mixers.self_attention import SelfAttention
from keras_transformer.mixers.window import AlternatingWindow, AttentionWindow, LocalWindow

__all__ = [
    "AlternatingWindow",
    "AttentionHeads",
    "CrossAttention",
    "LocalWindow",
    "MemoryReader",
    "Mixer",
    "SamePosition",
    "SelfAttention",
    "AttentionWindow",
    "check_given_once",
    "completed",
    "has_option",
    "in_table",
    "overridden",
    "shared_options",
    "short_options",
]
