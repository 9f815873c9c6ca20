"""Configurations: the dimensions of every model, with a preset for every row of Table 3."""

from keras_transformer.config.block import BlockConfig, Position, Score, head_sizes
from keras_transformer.config.classifier import ClassifierConfig
from keras_transformer.config.image_classifier import ImageClassifierConfig
from keras_transformer.config.language_model import LanguageModelConfig
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.presets import PRESETS
from keras_transformer.config.series import SeriesConfig
from keras_transformer.config.span_predictor import SpanPredictorConfig
from keras_transformer.config.stack import StackConfig
from keras_transformer.config.token_classifier import TokenClassifierConfig
from keras_transformer.config.transformer import TransformerConfig

__all__ = [
    "PRESETS",
    "BlockConfig",
    "ClassifierConfig",
    "ImageClassifierConfig",
    "LanguageModelConfig",
    "ModelConfig",
    "SeriesConfig",
    "Position",
    "Score",
    "SpanPredictorConfig",
    "StackConfig",
    "TokenClassifierConfig",
    "TransformerConfig",
    "head_sizes",
]
