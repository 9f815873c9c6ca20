"""Sequence-level distillation: a student is trained on the outputs of larger models."""
