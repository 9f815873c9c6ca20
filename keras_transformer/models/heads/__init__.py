"""Prediction heads: the layers after the last stack, one file for each kind."""
