"""Sentence embeddings: the task and its pipeline."""
