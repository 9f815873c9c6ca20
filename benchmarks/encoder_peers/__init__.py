"""Peers of `encoders.py`, one file each."""
