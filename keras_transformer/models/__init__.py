"""Functional models that are built of the layers."""

import keras  # noqa: F401  (before any model: importing it imports them all, see `registration`)
