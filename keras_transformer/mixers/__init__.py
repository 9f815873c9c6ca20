"""Mixers, which read the other positions in a block, as values: to add one, add a file here."""

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
from keras_transformer.mixers.gru import GRU
from keras_transformer.mixers.lstm import LSTM
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.self_attention import SelfAttention
from keras_transformer.mixers.ssru import SSRU

__all__ = [
    "GRU",
    "LSTM",
    "SSRU",
    "AttentionHeads",
    "CrossAttention",
    "Mixer",
    "SelfAttention",
    "check_given_once",
    "completed",
    "has_option",
    "in_table",
    "overridden",
    "shared_options",
    "short_options",
]
