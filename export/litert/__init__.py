"""A .tflite file for phones and browsers."""
