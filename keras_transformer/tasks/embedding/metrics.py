"""Cosines of pairs of vectors."""

import numpy as np


def cosines(vectors, partners) -> np.ndarray:
    """Returns the cosine of each pair of vectors, float64 `[T]`."""
    vectors, partners = (np.asarray(x, "float64") for x in (vectors, partners))
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(partners, axis=1)
    return (vectors * partners).sum(axis=1) / np.maximum(lengths, np.finfo("float64").tiny)
