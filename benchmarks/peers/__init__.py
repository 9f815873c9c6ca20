"""Peers of `training.py`, one file each."""
