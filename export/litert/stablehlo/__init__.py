"""Conversion of functions through StableHLO, without TensorFlow's own converter."""
