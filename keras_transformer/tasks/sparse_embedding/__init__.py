"""Sparse vectors of texts, with a weight for each token of the vocabulary: task and pipeline."""
