"""The layers of the paper, one concept in each file, in `keras.ops`."""
