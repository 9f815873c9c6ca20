"""A SavedModel for TensorFlow Serving."""
