"""Plots of attention weights, learning curves, schedules, position encodings, masks and models."""
