"""Labels of whole examples: their counts in training data, and how many answers are right."""

import collections
import difflib
import statistics
import time

from keras_transformer.text.numbers import parse_number

SHOWN = 20  # labels
SPACES = " \t\n\v\f\r"  # around a label: those that `tf.strings.strip` removes


def count_labels(labels):
    """Counts the labels of the training data.

    Args:
        labels: Iterable of bytes.

    Returns:
        Dictionary from each label to its count, in the order of their numbers if they are numbers.

    Raises:
        ValueError: If there are fewer than two different ones.
    """
    counts = collections.Counter(labels)
    decoded = collections.Counter()
    for label, count in counts.items():  # each once: decoding a million labels takes a second
        decoded[label.decode("utf-8", "replace").strip(SPACES)] += count
    if len(decoded) < 2:
        raise ValueError(
            "the training data must have at least two different labels. "
            f"Received: {', '.join(decoded) or 'none'}."
        )
    return {label: decoded[label] for label in sorted(decoded, key=_order)}


def described_labels(counts, noun="labels", kind=lambda label: None):
    """Returns sentences about labels: their counts, and a warning about those that occur once.

    Of more than `SHOWN` labels the most frequent and the rarest half are named.

    Args:
        counts: Dictionary from labels to their counts, in the order in which to name them.
        noun: What the labels are, in the plural.
        kind: Function of a label; only another one of equal value is suggested in its place.
    """
    by_count = sorted(counts, key=counts.get, reverse=True)
    if len(counts) <= SHOWN:
        text = f"{len(counts)} {noun}: {_with_counts(counts, counts)}."
    else:
        most, least = by_count[: SHOWN // 2], by_count[-SHOWN // 2 :]
        text = (
            f"{len(counts):,} {noun}, the most frequent {_with_counts(most, counts)}; the rarest "
            f"{_with_counts(least, counts)}."
        )
    once = [label for label in counts if counts[label] == 1]
    if not once:
        return (text,)
    others = [label for label in counts if counts[label] > 1]
    shown = ", ".join(_with_suggestion(label, others, kind) for label in once[:SHOWN])
    more = f" and {len(once) - SHOWN:,} more" if len(once) > SHOWN else ""
    warning = (
        f"Warning: {len(once):,} of them occur{'s' * (len(once) == 1)} only once in the training "
        f"data, where a typing error makes a label of its own: {shown}{more}."
    )
    return text, warning


def _with_counts(labels, counts):
    return ", ".join(f"{label!r} ({counts[label]:,})" for label in labels)


def _with_suggestion(label, others, kind):
    """A label, with the other one that it looks like, if there is one."""

    def key(label):  # labels with other digits, such as `x1` and `x2`, are meant to differ
        return kind(label), [character for character in label if character.isdigit()]

    others = [other for other in others if key(other) == key(label)]
    close = difflib.get_close_matches(label, others, n=1, cutoff=0.75)
    return f"{label!r} (did you mean {close[0]!r}?)" if close else repr(label)


def evaluate_labels(pipeline, inputs, labels, noun):
    """Classifies inputs and counts the right labels.

    Args:
        pipeline: What has `labels` and `classify`.
        inputs: List of what it classifies.
        labels: List of the right labels.
        noun: What an input is, for an error.

    Returns:
        Dictionary of `accuracy`, `macro_f1` and `seconds`, and the list of what `classify`
        returned.
    """
    labels, known = [label.strip(SPACES) for label in labels], pipeline.labels
    for number, label in enumerate(labels, start=1):
        if label not in known:
            raise ValueError(
                f"example {number}: the label must be one of {', '.join(known)}, which the "
                f"training data have. Received: {label!r}."
            )
    if not labels:
        raise ValueError(f"There must be at least one {noun} to classify. Received: none.")
    begin = time.perf_counter()
    results = pipeline.classify(inputs)
    seconds = time.perf_counter() - begin
    pairs = [(result.label, label) for result, label in zip(results, labels, strict=True)]
    right = sum(ours == theirs for ours, theirs in pairs)
    figures = {
        "accuracy": 100 * right / len(pairs),
        "macro_f1": 100 * statistics.fmean(_f1(pairs, label) for label in set().union(*pairs)),
        "seconds": round(seconds, 3),
    }
    return figures, results


def _order(label):
    """Numbers in their order, and other labels in that of their letters."""
    value = parse_number(label)
    return (1, 0.0, label) if value is None else (0, value, label)


def _f1(pairs, label):
    """The harmonic mean of precision and recall of a label; 0 if it is never right."""
    right = sum(ours == theirs == label for ours, theirs in pairs)
    both = sum((ours == label) + (theirs == label) for ours, theirs in pairs)
    return 2 * right / both
