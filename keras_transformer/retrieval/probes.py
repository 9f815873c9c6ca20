"""A few texts whose vectors tell whether two models have the same space."""

import numpy as np

PROBES = ("A man is eating.", "The weather is fine today, isn't it?", "3 Grüße aus Köln: 1 € 日本")
LEAST_COSINE = 0.999  # of a model and its export with weights in 16 bits


def vectors_of(answering, texts, batch_size=64, progress=None) -> np.ndarray:
    """Returns the vectors of texts, float32 `[T, D]`.

    Args:
        answering: A model or an export for embedding, an `Answering`.
        texts: List of strings.
        batch_size, progress: See `Answering.answer`.
    """
    results = answering.answer(list(texts), batch_size=batch_size, progress=progress)
    return np.array([result.values for result in results], np.float32)


def probes_of(answering) -> list[list[float]]:
    """Returns the vectors of `PROBES` without a prompt, as lists of numbers."""
    return vectors_of(answering.with_settings(prompt=""), PROBES).tolist()


def difference(ours, theirs) -> str | None:
    """Returns how the vectors of `PROBES` of two models differ; `None`: they are near each other.

    Args:
        ours, theirs: Lists of vectors.
    """
    ours, theirs = np.array(ours, float), np.array(theirs, float)
    if ours.shape != theirs.shape:
        return f"vectors of {theirs.shape[1]} features instead of {ours.shape[1]}"
    lengths = np.linalg.norm(ours, axis=1), np.linalg.norm(theirs, axis=1)
    tiny = np.finfo(float).tiny
    cosine = ((ours * theirs).sum(1) / np.maximum(lengths[0] * lengths[1], tiny)).min()
    if cosine < LEAST_COSINE:
        return f"other vectors: the cosine of the same text is {cosine:.3f}"
    if not np.allclose(*lengths, rtol=0.05):
        return "vectors of another length"
    return None
