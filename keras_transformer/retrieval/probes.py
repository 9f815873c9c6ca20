"""A few texts whose vectors tell whether two models have the same space."""

import numpy as np

PROBES = ("A man is eating.", "The weather is fine today, isn't it?", "3 Grüße aus Köln: 1 € 日本")
LEAST_COSINE = 0.999  # of a model and its export with weights in 16 bits


def difference(ours, theirs) -> str | None:
    """Returns how the vectors of `PROBES` of two models differ; `None`: they are near each other.

    Args:
        ours, theirs: Arrays of vectors, float64.
    """
    if ours.shape != theirs.shape:
        return f"vectors of {theirs.shape[1]} features instead of {ours.shape[1]}"
    lengths = np.linalg.norm(ours, axis=1), np.linalg.norm(theirs, axis=1)
    tiny = np.finfo(float).tiny
    cosines = (ours * theirs).sum(1) / np.maximum(lengths[0] * lengths[1], tiny)
    cosine = np.where((lengths[0] == 0) & (lengths[1] == 0), 1.0, cosines).min()
    if cosine < LEAST_COSINE:
        return f"other vectors: the cosine of the same text is {cosine:.3f}"
    if not np.allclose(*lengths, rtol=0.05):
        return "vectors of another length"
    return None
