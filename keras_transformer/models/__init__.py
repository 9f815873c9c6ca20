"""Functional models that are built of the layers."""
