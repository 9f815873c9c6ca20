"""Extractive question answering: the task and its pipeline."""
