"""Arithmetic: sums and products of binary numbers, by a Neural GPU or a Transformer."""
