"""Metrics of values: exact match of whole numbers and wrong digits, by the length of numbers."""

import collections
from collections.abc import Sequence


def wrong_digits(value: str, reference: str) -> int:
    """Returns the number of places at which two binary numbers have different digits.

    Args:
        value, reference: Binary numbers; the shorter one gets zeros before it.
    """
    return (int(value, 2) ^ int(reference, 2)).bit_count()


def value_metrics(
    values: Sequence[str], references: Sequence[str], lengths: Sequence[int]
) -> dict[str, float]:
    """Returns `exact_match` and `digit_errors`, percentages.

    Args:
        values: Predicted binary numbers.
        references: The correct ones.
        lengths: Number of digits that are predicted for each, with the zeros before it.

    Returns:
        Dictionary of `exact_match`, the percentage of values without a wrong digit, and
        `digit_errors`, the percentage of wrong digits.
    """
    wrong = [wrong_digits(*pair) for pair in zip(values, references, strict=True)]
    return {
        "exact_match": 100 * wrong.count(0) / len(wrong),
        "digit_errors": 100 * sum(wrong) / sum(lengths),
    }


def metrics_by_digits(
    values: Sequence[str],
    references: Sequence[str],
    lengths: Sequence[int],
    digits: Sequence[int],
) -> dict[str, dict[str, float]]:
    """Returns the `value_metrics` of expressions whose numbers have the same count of digits.

    Args:
        values, references, lengths: See `value_metrics`.
        digits: Number of digits of the longer number of each expression.

    Returns:
        Dictionary from the counts of digits, as strings, smallest first, to the metrics, with
        `expressions`, their number.
    """
    groups = collections.defaultdict(list)
    for row in zip(values, references, lengths, digits, strict=True):
        groups[row[3]].append(row[:3])
    return {
        str(count): {**value_metrics(*zip(*groups[count])), "expressions": len(groups[count])}  # noqa: B905
        for count in sorted(groups)
    }
