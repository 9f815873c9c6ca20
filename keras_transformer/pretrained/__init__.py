"""Checkpoints of other projects, read into models of this package."""
