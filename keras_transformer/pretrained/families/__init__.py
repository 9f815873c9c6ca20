"""Families of checkpoints, one file each: see `Family`."""
