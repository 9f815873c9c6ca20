"""Spans of words, and the labels BIO and BIOES that stand for them.

`B-X` begins a span of type X, `I-X` is inside of it, and `O` is outside of all; in BIOES `E-X` ends
a span of several words and `S-X` is a span of one. In IOB1, which is only read, `I-X` also begins a
span, unless one of the same type ends right before it. Words count from 0, and the end is excluded.
"""

import collections
import dataclasses

SCHEMES = {"BIO": "BI", "BIOES": "BIES", "IOB1": "BI"}
OUTSIDE = "O"


@dataclasses.dataclass(frozen=True, order=True)
class Span:
    """Words that belong together.

    Args:
        begin: Its first word.
        end: The word after its last.
        type: What it is, such as `"DATE"`.
    """

    begin: int
    end: int
    type: str


def spans_of(labels):
    """Returns the spans that labels stand for, also broken ones, a list of `Span`s in order.

    As in the CoNLL evaluation, and seqeval's default: a span ends where its type does, and `I-X`
    or `E-X` where none is open begins one.

    Args:
        labels: List of strings.
    """
    spans, begin, before = [], None, (OUTSIDE, "")
    for place, label in enumerate([*labels, OUTSIDE]):
        prefix, kind = parts_of(label)
        if begin is not None and _ends(before, prefix, kind):
            spans.append(Span(begin, place, before[1]))
            begin = None
        if begin is None and prefix != OUTSIDE:
            begin = place
        before = prefix, kind
    return spans


def _ends(before, prefix, kind):
    """Returns true if an open span ends before a label."""
    return before[0] in "ES" or prefix in ("B", "S", OUTSIDE) or before[1] != kind


def words_of(text):
    """Returns the words of a text: what spaces, tabs and ends of lines separate, as in a graph."""
    return [word.decode() for word in text.encode().split()]


def parts_of(label):
    """Returns the prefix and the type of a label; those of `O` are `O` and nothing."""
    prefix, _, kind = label.partition("-")
    return prefix, kind


def labels_of(spans, count, scheme="BIO"):
    """Returns the labels of spans, a list of strings.

    Args:
        spans: List of `Span`s that do not overlap.
        count: Number of words.
        scheme: `"BIO"` or `"BIOES"`.
    """
    labels = [OUTSIDE] * count
    for span in spans:
        inside = ["I"] * (span.end - span.begin)
        inside[0] = "B"
        if scheme == "BIOES":
            inside[-1] = "E" if len(inside) > 1 else "S"
        labels[span.begin : span.end] = [f"{prefix}-{span.type}" for prefix in inside]
    return labels


def find_problem(labels, scheme="BIO"):
    """Returns the place of the first label that breaks a scheme and what is wrong, or `None`.

    Args:
        labels: List of strings.
        scheme: `"BIO"`, `"BIOES"` or `"IOB1"`.
    """
    before = OUTSIDE, ""
    for place, label in enumerate(labels):
        prefix, kind = parts_of(label)
        if label != OUTSIDE and (prefix not in [*SCHEMES[scheme]] or not kind):
            forms = ", ".join(f"{letter}-TYPE" for letter in SCHEMES[scheme])
            return place, f"the label must be O or one of {forms} in {scheme}. Received: {label}."
        is_open = before[0] in ("B", "I")
        begins = scheme == "IOB1" or prefix not in ("I", "E")
        if not begins and not (is_open and before[1] == kind):
            after = "-".join(before).strip("-") if place else "the beginning of the sentence"
            return place, f"{label} must follow B-{kind} or I-{kind}. Received: it after {after}."
        if scheme == "BIOES" and is_open and prefix not in ("I", "E"):
            return place, _open(before, label)
        before = prefix, kind
    if scheme == "BIOES" and before[0] in ("B", "I"):
        return len(labels) - 1, _open(before, "the end of the sentence")
    return None


def _open(label, after):
    prefix, kind = label
    return f"the span of {prefix}-{kind} must end in E-{kind}. Received: {after} after it."


def span_metrics(predicted, expected):
    """Returns precision, recall and F1 of spans, each from 0 to 100.

    A span is right if its first word, its last word and its type are.

    Args:
        predicted, expected: For each sentence its labels, a list of strings.

    Returns:
        Dictionary of `span_f1`, `precision` and `recall`, of all spans together (the micro
        average), and `types`, a dictionary from each type to its `f1`, `precision`, `recall` and
        `spans`, how many are expected. What has nothing to count is 0.

    Reference: Tjong Kim Sang and De Meulder (2003), section 3.2; seqeval.
    """
    ours, theirs, both = (collections.Counter() for _ in range(3))
    for answer, right in zip(predicted, expected, strict=True):
        answer, right = set(spans_of(answer)), set(spans_of(right))
        for counter, spans in ((ours, answer), (theirs, right), (both, answer & right)):
            counter.update(span.type for span in spans)
    precision, recall, f1 = _scores(both.total(), ours.total(), theirs.total())
    types = {}
    for kind in sorted(ours | theirs):
        p, r, f = _scores(both[kind], ours[kind], theirs[kind])
        types[kind] = {"f1": f, "precision": p, "recall": r, "spans": theirs[kind]}
    return {"span_f1": f1, "precision": precision, "recall": recall, "types": types}


def _scores(right, predicted, expected):
    precision = 100 * right / predicted if predicted else 0.0
    recall = 100 * right / expected if expected else 0.0
    return precision, recall, 200 * right / (predicted + expected) if predicted + expected else 0.0
