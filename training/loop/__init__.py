"""One training: updates, validation, checkpoints, the end."""
