"""Conversion of checkpoints of other projects to models of this package."""
