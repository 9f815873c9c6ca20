"""Vectors of images: the task, its model and its pipeline."""
