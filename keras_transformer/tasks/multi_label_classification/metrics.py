"""Metrics of sets of labels: precision, recall and F1 of each label and of all, equal sets."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def as_matrix(sets: Sequence[Sequence[str]], labels: Sequence[str]) -> np.ndarray:
    """Returns which labels each text has, boolean `[N, C]`.

    Args:
        sets: The labels of each text, all of them among `labels`.
        labels: Names of the classes C.
    """
    places = {label: place for place, label in enumerate(labels)}
    matrix = np.zeros((len(sets), len(labels)), bool)
    for row, names in zip(matrix, sets, strict=True):
        row[[places[name] for name in names]] = True
    return matrix


def f1_scores(predicted: np.ndarray, correct: np.ndarray) -> tuple[float, np.ndarray]:
    """Returns micro F1 and the F1 of each label, from 0 to 1.

    `F1 = 2 TP / (2 TP + FP + FN)`, with the counts of true positives, false positives and false
    negatives of one label, or of all labels together for micro F1. F1 is 0 if all three are 0, as
    with scikit-learn's `zero_division=0`. Macro F1 is the mean over all labels.

    Args:
        predicted, correct: Boolean `[N, C]`.
    """
    right = (predicted & correct).sum(axis=0)  # [C]
    both = predicted.sum(axis=0) + correct.sum(axis=0)  # [C]
    return float(_ratio(2 * right.sum(), both.sum())), _ratio(2 * right, both)


def label_metrics(
    predicted: np.ndarray, correct: np.ndarray, labels: Sequence[str]
) -> dict[str, Any]:
    """Returns the metrics of predicted sets of labels, from 0 to 100.

    Args:
        predicted, correct: Boolean `[N, C]`.
        labels: Names of the classes C.

    Returns:
        Dictionary of `micro_f1` and `macro_f1`, see `f1_scores`; `subset_accuracy`, the share of
        texts all of whose labels are right; and `per_label`, for each label a dictionary of
        `precision`, `recall`, `f1` and `texts`, the number of texts that have it. Precision is 0 if
        the label is never predicted, recall is 0 if no text has it.
    """
    micro, f1 = f1_scores(predicted, correct)
    right = (predicted & correct).sum(axis=0)  # [C]
    precision, recall = (_ratio(right, matrix.sum(axis=0)) for matrix in (predicted, correct))
    columns = 100 * precision, 100 * recall, 100 * f1
    return {
        "micro_f1": 100 * micro,
        "macro_f1": 100 * float(f1.mean()),
        "subset_accuracy": 100 * float((predicted == correct).all(axis=1).mean()),
        "per_label": {
            label: {
                **dict(zip(("precision", "recall", "f1"), map(float, of_label), strict=True)),
                "texts": int(count),
            }
            for label, count, *of_label in zip(labels, correct.sum(axis=0), *columns, strict=True)
        },
    }


def _ratio(part, whole):
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)
