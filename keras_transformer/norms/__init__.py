"""Normalisations of a block as values (section 3.1): to add one, add a file with its class here."""

from keras_transformer.norms.layer_norm import LayerNorm
from keras_transformer.norms.none import NoNorm
from keras_transformer.norms.norm import Norm
from keras_transformer.norms.place import NormPlace, PostNorm, PreNorm
from keras_transformer.norms.rms_norm import RMSNorm
from keras_transformer.norms.scale import Scale

__all__ = [
    "LayerNorm",
    "NoNorm",
    "Norm",
    "NormPlace",
    "PostNorm",
    "PreNorm",
    "RMSNorm",
    "Scale",
]
