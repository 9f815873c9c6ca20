"""Inputs that are no tokens: images and time series as sequences of vectors."""
