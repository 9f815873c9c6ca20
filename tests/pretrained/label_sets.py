"""Comparison of pipelines for several labels per text with those of `transformers`."""

import numpy as np

LONG = "good film " * 40  # as in `hugging_face_bert.py`


def check_sets(pipeline, texts, theirs):
    """Compares probabilities of a padded batch with those of each text on its own.

    Args:
        pipeline: Ours.
        texts: List of texts, of which the last one is truncated.
        theirs: Labels and probabilities of each text, the highest first.
    """
    results = pipeline.answer(texts)
    assert [result.truncated for result in results][-1]
    assert len(results) == len(theirs)
    for result, rows in zip(results, theirs, strict=True):
        ours = dict(zip(pipeline.labels, result.probabilities, strict=True))
        assert {*ours} == {row["label"] for row in rows}
        expected = [row["score"] for row in rows]
        found = [ours[row["label"]] for row in rows]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        assert {*result.labels} == {row["label"] for row in rows if row["score"] >= 0.5}
    assert np.ptp([result.probabilities for result in results], axis=0).min() > 1e-3
