"""The layers of the paper, one concept in each file, in `keras.ops`."""

import keras  # noqa: F401  (before any layer: importing it imports them all, see `registration`)
