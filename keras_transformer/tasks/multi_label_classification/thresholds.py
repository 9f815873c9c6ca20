"""Thresholds of probabilities: their form, and those that are best for given texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_transformer.checks import check_share

USUAL = 0.5
AIMS = ("macro_f1", "micro_f1", "label_f1")
EQUAL = 1e-12  # largest difference of two values of a metric that differ by rounding


def thresholds_of(threshold: Any, labels: Sequence[str]) -> tuple[float, ...]:
    """Returns the threshold of each label, rounded to float32, the dtype of probabilities.

    Args:
        threshold: A number from 0 to 1 for all labels, or a dictionary from labels to numbers.
        labels: Names of the classes.

    Raises:
        TypeError, ValueError: If it is neither, or the dictionary has other labels.
    """
    if not isinstance(threshold, Mapping):
        threshold = dict.fromkeys(labels, threshold)
    elif {*threshold} != {*labels}:
        missing, unknown = sorted({*labels} - {*threshold}), sorted({*threshold} - {*labels})
        reason = f"none for {missing[0]!r}" if missing else f"one for {unknown[0]!r}"
        raise ValueError(
            "`threshold` must be a number, or have one for each label and no others. "
            f"Received: {reason}."
        )
    for value in threshold.values():
        check_share("threshold", value)
    return tuple(float(np.float32(threshold[label])) for label in labels)


def best_thresholds(
    probabilities: np.ndarray, correct: np.ndarray, labels: Sequence[str], aim: str = "macro_f1"
) -> float | dict[str, float]:
    """Returns the threshold, or the threshold of each label, with the best F1 for given texts.

    A text has a label if `p >= t`. Candidates for `t` lie in the middle between two neighbouring
    probabilities that occur. Of candidates that are equally good, the one nearest to 0.5 is chosen,
    and 0.5 if F1 is 0 with all of them, as for a label that no text has.

    Args:
        probabilities: float32 `[N, C]`.
        correct: Boolean `[N, C]`.
        labels: Names of the classes C.
        aim: `"macro_f1"`: one `t` for all labels, with the highest mean over labels of
            `2 TP / (2 TP + FP + FN)`. `"micro_f1"`: one `t`, with the highest value of this formula
            for the counts of all labels together. `"label_f1"`: a `t` for each label, with its
            highest F1, and therefore with the highest macro F1 of all.

    Returns:
        A number; for `"label_f1"` a dictionary from labels to numbers.
    """
    if aim == "label_f1":
        columns = (slice(number, number + 1) for number in range(len(labels)))
        values = (_best(*_macro(probabilities[:, c], correct[:, c])) for c in columns)
        return dict(zip(labels, values, strict=True))
    curve = _macro if aim == "macro_f1" else _micro
    return _best(*curve(probabilities, correct))


def _micro(probabilities, correct):
    """Returns all probabilities in descending order, and micro F1 with each as the threshold."""
    flat = probabilities.ravel()
    order = np.argsort(-flat, kind="stable")
    right = np.cumsum(correct.ravel()[order])
    return flat[order], 2 * right / (np.arange(1, flat.size + 1) + correct.sum())


def _macro(probabilities, correct):
    """Returns all probabilities in descending order, and macro F1 with each as the threshold.

    Every probability changes the F1 of its own label only, by a gain that is added up.
    """
    order = np.argsort(-probabilities, axis=0, kind="stable")
    values = np.take_along_axis(probabilities, order, axis=0)  # [N, C], each column descends
    right = np.cumsum(np.take_along_axis(correct, order, axis=0), axis=0)
    counts = np.arange(1, len(values) + 1)[:, None]
    f1 = 2 * right / (counts + correct.sum(axis=0))  # [N, C]
    gains = np.diff(f1, axis=0, prepend=0.0).ravel()
    order = np.argsort(-values.ravel(), kind="stable")
    return values.ravel()[order], np.cumsum(gains[order]) / values.shape[1]


def _best(values, curve):
    """Returns the best threshold of a curve; of equal values, only the last is a candidate."""
    is_last = np.append(values[1:] != values[:-1], True)
    curve, upper = curve[is_last], values[is_last].astype("float32")
    if curve.max() <= 0:
        return USUAL
    lower = np.append(upper[1:], np.float32(0))
    middle = (upper + lower) / np.float32(2)
    middle = np.where(middle > lower, middle, upper)  # neighbours in float32
    middle = middle[curve >= curve.max() - EQUAL]
    return float(middle[np.argmin(np.abs(middle - USUAL))])
