"""Summarisation: long texts to short ones."""
