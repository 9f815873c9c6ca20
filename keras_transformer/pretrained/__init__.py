"""Checkpoints of other projects as models of this package."""
