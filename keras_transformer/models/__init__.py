"""Functional Keras models built from the layers."""

import keras  # noqa: F401  (first, because importing Keras imports all models: see `registration`)
