"""Normalisations of a block as values (section 3.1): to add one, add a file with its class here."""

from keras_transformer.norms.layer_norm import LayerNorm
from keras_transformer.norms.norm import Norm
from keras_transformer.norms.rms_norm import RMSNorm

__all__ = ["LayerNorm", "Norm", "RMSNorm"]
