"""Position encodings as values (section 3.5; Table 3, row E).

To add a position encoding, add a file with its class here. It is found by the `kind` of the class.
"""

from keras_transformer.positions.alibi import Alibi
from keras_transformer.positions.binary import Binary
from keras_transformer.positions.disentangled import Disentangled
from keras_transformer.positions.grid import SinusoidalGrid
from keras_transformer.positions.position import Position, distances, for_attention, for_embedding
from keras_transformer.positions.relative import Relative
from keras_transformer.positions.rotary import Rotary
from keras_transformer.positions.scaling import (
    LinearScaling,
    Llama3Scaling,
    RotaryScaling,
    YarnScaling,
)
from keras_transformer.positions.t5 import T5Bias
from keras_transformer.positions.tables import (
    FixedPosition,
    Learned,
    Sinusoidal,
    sinusoids,
)

__all__ = [
    "Alibi",
    "Binary",
    "Disentangled",
    "FixedPosition",
    "Learned",
    "LinearScaling",
    "Llama3Scaling",
    "Position",
    "Relative",
    "Rotary",
    "RotaryScaling",
    "Sinusoidal",
    "SinusoidalGrid",
    "T5Bias",
    "YarnScaling",
    "distances",
    "for_attention",
    "for_embedding",
    "sinusoids",
]
