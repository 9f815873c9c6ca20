"""The layers of the paper in `keras.ops`, one concept per file."""
