"""Extractive question answering: the part of a passage that answers a question."""
