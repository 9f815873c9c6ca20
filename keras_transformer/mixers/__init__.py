"""What reads the other positions in a block, as values: to add one, add a file with its class."""

from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.self_attention import SelfAttention
from keras_transformer.mixers.ssru import SSRU

__all__ = ["SSRU", "Mixer", "SelfAttention"]
