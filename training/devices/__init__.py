"""Devices and precision of a training."""
