"""Batches of token ids, and the corpora they are made of."""
