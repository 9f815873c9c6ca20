"""Class labels of examples: their counts in training data, and metrics of predicted labels."""

import collections
import difflib
import statistics
import time

from keras_transformer.tasks.examples import ExampleError
from keras_transformer.text.numbers import parse_number

SHOWN = 20  # maximum number of labels in a sentence
SPACES = " \t\n\v\f\r"  # removed around a label, as by `tf.strings.strip`


def count_labels(labels) -> dict[str, int]:
    """Counts the labels of the training data.

    Args:
        labels: Iterable of bytes.

    Returns:
        Dictionary from labels to their counts, in alphabetical order; labels that are numbers come
        first, in numerical order.

    Raises:
        ValueError: If there are fewer than two different labels.
    """
    counts = collections.Counter(labels)
    decoded = collections.Counter()
    for label, count in counts.items():  # decoding a million labels takes a second
        decoded[label.decode("utf-8", "replace").strip(SPACES)] += count
    if len(decoded) < 2:
        raise ValueError(
            "the training data must have at least two different labels. "
            f"Received: {', '.join(decoded) or 'none'}."
        )
    return {label: decoded[label] for label in sorted(decoded, key=_order)}


def described_labels(counts, noun="labels", kind=lambda label: None) -> tuple[str, ...]:
    """Returns sentences about labels: their counts, and a warning about labels that occur once.

    If there are more than `SHOWN` labels, only the most frequent and the rarest ones are named.

    Args:
        counts: Dictionary from labels to their counts, in the order in which to name them.
        noun: Noun for the labels, in the plural.
        kind: Function of a label. A label is suggested in place of another only if the function
            returns the same value for both.
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
        f"data and may be {'a typing error' if len(once) == 1 else 'typing errors'}: {shown}{more}."
    )
    return text, warning


def _with_counts(labels, counts):
    return ", ".join(f"{label!r} ({counts[label]:,})" for label in labels)


def _with_suggestion(label, others, kind):
    """Returns a label, with a similar label if there is one."""

    def key(label):  # labels that differ in digits, such as `x1` and `x2`, differ on purpose
        return kind(label), [character for character in label if character.isdigit()]

    others = [other for other in others if key(other) == key(label)]
    close = difflib.get_close_matches(label, others, n=1, cutoff=0.75)
    return f"{label!r} (did you mean {close[0]!r}?)" if close else repr(label)


def evaluate_labels(pipeline, inputs, labels, noun) -> tuple[dict[str, float], list]:
    """Classifies inputs and compares the predicted labels with the correct ones.

    Args:
        pipeline: A pipeline with an attribute `labels` and a method `classify`.
        inputs: List of inputs of the pipeline.
        labels: List of the correct labels.
        noun: Noun for an input, for errors.

    Returns:
        Dictionary of `accuracy`, `macro_f1` and `seconds`, and the list of results of `classify`.
    """
    labels, known = [label.strip(SPACES) for label in labels], pipeline.labels
    for number, label in enumerate(labels, start=1):
        if label not in known:
            raise ExampleError(
                number,
                f"the label must be one of those in the training data, {', '.join(known)}. "
                f"Received: {label!r}.",
            )
    if not labels:
        raise ValueError(f"There must be at least one {noun} to classify. Received: none.")
    begin = time.perf_counter()
    results = pipeline.classify(inputs)
    seconds = time.perf_counter() - begin
    pairs = [(result.label, label) for result, label in zip(results, labels, strict=True)]
    correct = sum(ours == theirs for ours, theirs in pairs)
    metrics = {
        "accuracy": 100 * correct / len(pairs),
        "macro_f1": 100 * statistics.fmean(_f1(pairs, label) for label in set().union(*pairs)),
        "seconds": round(seconds, 3),
    }
    return metrics, results


def _order(label):
    """Returns a sort key: numbers first, in numerical order, then other labels."""
    value = parse_number(label)
    return (1, 0.0, label) if value is None else (0, value, label)


def _f1(pairs, label):
    """Returns the harmonic mean of a label's precision and recall; 0 if it is never correct."""
    correct = sum(ours == theirs == label for ours, theirs in pairs)
    both = sum((ours == label) + (theirs == label) for ours, theirs in pairs)
    return 2 * correct / both
