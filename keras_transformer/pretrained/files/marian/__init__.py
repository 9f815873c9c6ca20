"""Marian's own files: `.npz` and `.bin`, the arrays and the settings inside them."""
