"""Prediction heads: the layers after the last stack, one kind per file."""
