"""Image classification: the task, its pipeline, and image files."""
