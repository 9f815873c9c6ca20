"""The layers of the paper in `keras.ops`, one concept per file."""

import keras  # noqa: F401  (first, because importing Keras imports all layers: see `registration`)
