"""Recurrent layers, which replace self-attention by a state of fixed size."""
