"""Devices of a training, and its precision."""
