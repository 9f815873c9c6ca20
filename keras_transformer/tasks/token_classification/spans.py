"""Spans of words, and the labels that encode them.

`B-X` begins a span of type X, `I-X` continues it, and `O` is outside of all spans. In BIOES, `E-X`
ends a span of several words, and `S-X` is a span of one word; BILOU calls them `L-X` and `U-X`.
Other schemes are only read. In IOB1 `I-X` also begins a span, unless a span of the same type ends
right before it. In IOE `E-X` ends a span, or only one that another of its type follows. In IO there
is `I-X` alone, or the type itself: neighbours of one type are one span. The letter may also come
last, as in `X-B`. Words are counted from 0, and the end of a span is exclusive.
"""

import collections
import dataclasses
from typing import Any

SCHEMES = {"BIO": "BI", "IOE": "IE", "BIOES": "BIES", "BILOU": "BILU", "IOB1": "BI", "IO": "I"}
CONVERTED = ("IOB1", "IOE", "IO")  # to BIO, which a model learns instead
WITH_ENDS = ("BIOES", "BILOU")
OUTSIDE = "O"
# The letters of BIOES and BILOU, and what they mean in BIOES.
LETTERS = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S"}


@dataclasses.dataclass(frozen=True, order=True)
class Span:
    """A sequence of words with a type.

    Args:
        begin: Index of the first word.
        end: Index after the last word.
        type: Type of the span, such as `"DATE"`.
    """

    begin: int
    end: int
    type: str


def spans_of(labels, scheme=None) -> list[Span]:
    """Returns the list of `Span`s that labels encode, in order.

    Labels that break the scheme are read as in the CoNLL evaluation and in seqeval: a span ends
    where the type changes, and `I-X` or `E-X` without an open span begins one.

    Args:
        labels: List of strings.
        scheme: See `parts_of`.
    """
    spans, begin, before = [], None, (OUTSIDE, "")
    for place, label in enumerate([*labels, OUTSIDE]):
        prefix, kind = parts_of(label, scheme)
        if begin is not None and _ends(before, prefix, kind):
            spans.append(Span(begin, place, before[1]))
            begin = None
        if begin is None and prefix != OUTSIDE:
            begin = place
        before = prefix, kind
    return spans


def _ends(before, prefix, kind):
    """Returns whether an open span ends before a label."""
    return before[0] in "ES" or prefix in ("B", "S", OUTSIDE) or before[1] != kind


def words_of(text) -> list[str]:
    """Returns the words of a text, separated by ASCII white space as in a graph."""
    return [word.decode() for word in text.encode().split()]


def parts_of(label, scheme=None) -> tuple[str, str]:
    """Returns the letter of a label, as in BIOES, and its type.

    For `O`, they are `O` and an empty string; for a label without a letter, `I` and the label.

    Args:
        label: The label.
        scheme: One of `SCHEMES`, whose letters alone are letters: in IO, `E-MAIL` is a type.
            `None`: those of all schemes are.
    """
    if label == OUTSIDE:
        return OUTSIDE, ""
    letter, kind = _split(label, scheme)
    return LETTERS.get(letter, "I"), kind


def letter_of(label, scheme=None) -> str:
    """Returns the letter of a label as it is written, an empty string if it has none."""
    return OUTSIDE if label == OUTSIDE else _split(label, scheme)[0]


def _split(label, scheme):
    """Returns the letter of a label, which may be its prefix or its suffix, and its type.

    The letter is empty if the label has none.
    """
    letters = [*LETTERS] if scheme is None else [*SCHEMES[scheme]]
    prefix, dash, kind = label.partition("-")
    if dash and prefix in letters:
        return prefix, kind
    kind, dash, suffix = label.rpartition("-")
    return (suffix, kind) if dash and suffix in letters else ("", label)


def labels_of(spans, count, scheme="BIO") -> list[str]:
    """Returns the list of labels that encode spans.

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


def find_problem(labels, scheme="BIO") -> tuple[int, str] | None:
    """Returns the index of the first label that breaks a scheme and a message, or `None`.

    Args:
        labels: List of strings.
        scheme: One of `SCHEMES`.
    """
    before = OUTSIDE, ""
    for place, label in enumerate(labels):
        prefix, kind = parts_of(label, scheme)
        letters = ["", "I"] if scheme == "IO" else [*SCHEMES[scheme]]
        is_bio = scheme == "IO" and label.startswith("B-")  # not a type such as E-MAIL
        known = letter_of(label, scheme) in letters and not is_bio
        if label != OUTSIDE and not (known and kind):
            forms = ", ".join(f"{letter}-TYPE" for letter in SCHEMES[scheme])
            return place, f"the label must be O or one of {forms} in {scheme}. Received: {label}."
        is_open = before[0] in ("B", "I")
        begins = scheme in CONVERTED or prefix not in ("I", "E")
        if not begins and not (is_open and before[1] == kind):
            after = "-".join(before).strip("-") if place else "the beginning of the sentence"
            return (
                place,
                f"{label} must follow B-{kind} or I-{kind}. Received: {label} after {after}.",
            )
        if scheme in WITH_ENDS and is_open and prefix not in ("I", "E"):
            return place, _open(before, label)
        before = prefix, kind
    if scheme in WITH_ENDS and before[0] in ("B", "I"):
        return len(labels) - 1, _open(before, "the end of the sentence")
    return None


def _open(label, after):
    prefix, kind = label
    return f"the span of {prefix}-{kind} must end in E-{kind}. Received: {after} after it."


def span_metrics(predicted, expected) -> dict[str, Any]:
    """Returns precision, recall and F1 of spans, each from 0 to 100.

    A span is correct if its first word, its last word and its type are correct.

    Args:
        predicted, expected: Lists of the labels of each sentence, which are lists of strings.

    Returns:
        Dictionary of `span_f1`, `precision` and `recall` over all spans (the micro average), and
        `types`, a dictionary from each type to its `f1`, `precision`, `recall` and `spans`, the
        number of expected spans. Metrics without any span to count are 0.

    Reference: Tjong Kim Sang and De Meulder (2003), section 3.2; seqeval.
    """
    ours, theirs, both = (collections.Counter() for _ in range(3))
    for answer, reference in zip(predicted, expected, strict=True):
        answer, reference = set(spans_of(answer)), set(spans_of(reference))
        for counter, spans in ((ours, answer), (theirs, reference), (both, answer & reference)):
            counter.update(span.type for span in spans)
    precision, recall, f1 = _scores(both.total(), ours.total(), theirs.total())
    types = {}
    for kind in sorted(ours | theirs):
        p, r, f = _scores(both[kind], ours[kind], theirs[kind])
        types[kind] = {"f1": f, "precision": p, "recall": r, "spans": theirs[kind]}
    return {"span_f1": f1, "precision": precision, "recall": recall, "types": types}


def _scores(correct, predicted, expected):
    precision = 100 * correct / predicted if predicted else 0.0
    recall = 100 * correct / expected if expected else 0.0
    total = predicted + expected
    return precision, recall, 200 * correct / total if total else 0.0
