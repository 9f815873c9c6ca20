"""Training of sparse vectors of texts."""
