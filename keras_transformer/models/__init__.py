"""Functional Keras models built from the layers."""
