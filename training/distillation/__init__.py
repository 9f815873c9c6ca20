"""Sequence-level distillation: a student is trained on what larger models generate."""
