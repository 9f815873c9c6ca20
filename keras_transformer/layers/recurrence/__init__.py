"""Layers that read a sequence through a state of fixed size, in place of attention."""
