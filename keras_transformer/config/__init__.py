"""Configurations of models, composed of parts, with a preset for every row of Table 3."""

from keras_transformer.config.block import BlockConfig
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import OldConfigurationError
from keras_transformer.config.presets import PRESETS
from keras_transformer.config.stack import StackConfig
from keras_transformer.config.transformer import TransformerConfig

__all__ = [
    "PRESETS",
    "BlockConfig",
    "ModelConfig",
    "OldConfigurationError",
    "StackConfig",
    "TransformerConfig",
]
