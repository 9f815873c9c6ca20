"""Masked language modelling: the task, its masks, and its pipeline."""
