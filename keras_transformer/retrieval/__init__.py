"""Indexes of texts by their vectors: files on disk, exact and approximate search."""
