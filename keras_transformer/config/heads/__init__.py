"""Configurations of prediction heads, one kind of output per file."""

from keras_transformer.config.heads.generating import GeneratingHead
from keras_transformer.config.heads.labels import ImageLabelsHead, LabelsHead, TokenLabelsHead
from keras_transformer.config.heads.masked_token import MaskedTokenHead
from keras_transformer.config.heads.next_token import NextTokenHead
from keras_transformer.config.heads.number import NumberHead
from keras_transformer.config.heads.spans import SpansHead
from keras_transformer.config.heads.target import TargetHead
from keras_transformer.config.heads.vector import VectorHead

__all__ = [
    "GeneratingHead",
    "ImageLabelsHead",
    "LabelsHead",
    "MaskedTokenHead",
    "NextTokenHead",
    "NumberHead",
    "SpansHead",
    "TargetHead",
    "TokenLabelsHead",
    "VectorHead",
]
