"""Blocks of the Transformer and stacks of blocks (Fig. 1)."""
