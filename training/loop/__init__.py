"""Training loop: updates, validations, checkpoints and the final model."""
