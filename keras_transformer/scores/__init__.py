"""Attention scores as values (section 3.2.1): to add one, add a file with its class here."""

from keras_transformer.scores.additive import Additive
from keras_transformer.scores.score import AttentionScore, DotProduct, General, ScaledDotProduct

__all__ = ["Additive", "AttentionScore", "DotProduct", "General", "ScaledDotProduct"]
