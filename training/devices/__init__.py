"""Devices and precision of training."""
