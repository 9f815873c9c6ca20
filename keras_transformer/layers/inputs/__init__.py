"""Inputs other than tokens: images and time series as sequences of vectors."""
