"""Summarisation: the task and its pipeline."""
