"""Marian's own files, `.npz` and `.bin`, with the arrays and the settings inside them."""
