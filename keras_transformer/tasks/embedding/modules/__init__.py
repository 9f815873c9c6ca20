"""Layers after the pooling of a `TextEmbedder`: one file for each kind of them."""
