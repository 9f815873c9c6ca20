"""Blocks of the Transformer (Fig. 1): residuals, one block, stacks of blocks."""
