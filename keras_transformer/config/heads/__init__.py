"""Configurations of prediction heads, one kind of output per file."""

from keras_transformer.config.heads.generating import GeneratingHead
from keras_transformer.config.heads.labels import ImageLabelsHead, LabelsHead, TokenLabelsHead
from keras_transformer.config.heads.next_token import NextTokenHead
from keras_transformer.config.heads.target import TargetHead
from keras_transformer.tasks.embedding.config import VectorHead
from keras_transformer.tasks.masked_language_modelling.config import MaskedTokenHead
from keras_transformer.tasks.question_answering.config import SpansHead
from keras_transformer.tasks.time_series.config import NumberHead

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
