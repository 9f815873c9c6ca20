"""Marian's own model files: read, written, and mapped to a `Transformer` and back."""
