"""Spans of words: to labels and back, broken spans, and F1 by the rules of conlleval."""

import itertools

import pytest

from keras_transformer.tasks.token_classification.spans import (
    Span,
    find_problem,
    labels_of,
    span_metrics,
    spans_of,
)
from keras_transformer.tasks.token_classification.task import scheme_of


def all_spans(count, types=("X", "Y")):
    """Yields every set of spans over some words, by choosing each next start and end."""

    def beyond(start):
        yield []
        for begin in range(start, count):
            for end in range(begin + 1, count + 1):
                for kind in types:
                    for rest in beyond(end):
                        yield [Span(begin, end, kind), *rest]

    yield from beyond(0)


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
def test_every_set_of_spans_survives_a_round_trip(scheme):
    sets, seen = list(all_spans(4)), set()
    for spans in sets:
        labels = labels_of(spans, 4, scheme)
        assert spans_of(labels) == spans and find_problem(labels, scheme) is None
        seen.add(tuple(labels))
    assert len(seen) == len(sets) > 100, "no two sets of spans have the same labels"


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
def test_valid_labels_are_exactly_those_of_sets_of_spans(scheme):
    """Checks all sequences of labels."""
    names = ["O", *(f"{p}-{t}" for p in "BIES" for t in "XY")]
    right = {tuple(labels_of(spans, 3, scheme)) for spans in all_spans(3)}
    for labels in itertools.product(names, repeat=3):
        assert (find_problem(labels, scheme) is None) == (labels in right), labels


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("O I-X I-X", [Span(1, 3, "X")]),
        ("B-X I-Y I-Y", [Span(0, 1, "X"), Span(1, 3, "Y")]),
        ("B-X B-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("B-X E-X I-X", [Span(0, 2, "X"), Span(2, 3, "X")]),
        ("S-X I-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("E-X E-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("I-X O I-X", [Span(0, 1, "X"), Span(2, 3, "X")]),
        ("", []),
        ("PER PER LOC O PER", [Span(0, 2, "PER"), Span(2, 3, "LOC"), Span(4, 5, "PER")]),  # IO
        ("I-X I-X I-Y", [Span(0, 2, "X"), Span(2, 3, "Y")]),
        ("I-X E-X E-X I-Y E-Y", [Span(0, 2, "X"), Span(2, 3, "X"), Span(3, 5, "Y")]),  # IOE
        ("B-X I-X L-X U-X O U-Y", [Span(0, 3, "X"), Span(3, 4, "X"), Span(5, 6, "Y")]),  # BILOU
        ("X-B X-I O X-B X-B", [Span(0, 2, "X"), Span(3, 4, "X"), Span(4, 5, "X")]),  # suffixes
        ("B-A-B I-A-B", [Span(0, 2, "A-B")]),  # a type with a hyphen
    ],
)
def test_broken_labels_give_the_spans_of_seqeval(labels, expected):
    """The rules are its `start_of_chunk` and `end_of_chunk`, taken from conlleval."""
    assert spans_of(labels.split()) == expected


@pytest.mark.parametrize(
    ("labels", "scheme", "expected"),
    [
        ("MY-TYPE MY-TYPE O I-MY-TYPE", "IO", [Span(0, 2, "MY-TYPE"), Span(3, 4, "MY-TYPE")]),
        ("E-MAIL E-MAIL O E-MAIL-I", "IO", [Span(0, 2, "E-MAIL"), Span(3, 4, "E-MAIL")]),
        ("VITAMIN-B I-VITAMIN-B", "IO", [Span(0, 2, "VITAMIN-B")]),
        ("S-BAHN-B S-BAHN-I", "BIO", [Span(0, 2, "S-BAHN")]),
    ],
)
def test_only_the_letters_of_the_scheme_are_letters(labels, scheme, expected):
    assert spans_of(labels.split(), scheme) == expected
    assert find_problem(labels.split(), scheme) is None


@pytest.mark.parametrize(
    ("labels", "scheme", "place", "message"),
    [
        ("O I-X", "BIO", 1, "I-X must follow B-X or I-X. Received: I-X after O."),
        ("I-X", "BIO", 0, "I-X after the beginning of the sentence"),
        ("B-Y I-X", "BIO", 1, "I-X after B-Y"),
        ("O E-X", "BIOES", 1, "E-X must follow B-X or I-X. Received: E-X after O."),
        ("B-X O", "BIOES", 1, "the span of B-X must end in E-X. Received: O after it."),
        ("O B-X", "BIOES", 1, "must end in E-X. Received: the end of the sentence after it."),
        ("S-X", "BIO", 0, "must be O or one of B-TYPE, I-TYPE in BIO. Received: S-X."),
        ("B-", "BIO", 0, "Received: B-."),
        ("NN", "BIOES", 0, "Received: NN."),
    ],
)
def test_a_broken_span_is_reported_in_one_line(labels, scheme, place, message):
    at, what = find_problem(labels.split(), scheme)
    assert at == place and message in what


def test_metrics_follow_their_definitions():
    """Expected: 2 X and 2 Y. Predicted: 3 spans, of which one X is right; a Y ends wrongly."""
    expected = [["B-X", "I-X", "O", "B-Y"], ["B-X", "O", "B-Y", "I-Y"]]
    predicted = [["B-X", "I-X", "O", "B-X"], ["O", "O", "B-Y", "O"]]
    figures = span_metrics(predicted, expected)
    assert figures["precision"] == pytest.approx(100 / 3)
    assert figures["recall"] == pytest.approx(100 / 4)
    assert figures["span_f1"] == pytest.approx(100 * 2 / 7)
    assert figures["types"]["X"] == {
        "f1": pytest.approx(50), "precision": 50.0, "recall": 50.0, "spans": 2,
    }  # fmt: skip
    assert figures["types"]["Y"] == {"f1": 0.0, "precision": 0.0, "recall": 0.0, "spans": 2}


def test_the_example_of_seqeval_gives_its_metrics():
    """From its README: MISC is found one word too short, PER is found; F1 is 0.50."""
    expected = [
        ["O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"],
        ["B-PER", "I-PER", "O"],
    ]
    predicted = [
        ["O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"],
        ["B-PER", "I-PER", "O"],
    ]
    figures = span_metrics(predicted, expected)
    assert figures["span_f1"] == 50.0
    assert {name: of["f1"] for name, of in figures["types"].items()} == {"MISC": 0, "PER": 100}


def test_without_spans_the_metrics_are_zero():
    figures = span_metrics([["O"]], [["O"]])
    assert figures == {"span_f1": 0.0, "precision": 0.0, "recall": 0.0, "types": {}}


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        ("B-X I-X", "BIO"),
        ("B-X", "BIO"),
        ("B-X I-X E-X S-X", "BIOES"),
        ("B-X I-X L-X U-X", "BILOU"),
        ("I-X I-Y", "IO"),
        ("LOC PER ORG", "IO"),
        ("I-X E-X", "IOE"),
        ("X-B X-I", "BIO"),
    ],
)
def test_the_scheme_is_found_from_the_labels(labels, scheme):
    assert scheme_of(["O", *labels.split()]) == scheme


@pytest.mark.parametrize("labels", ["B_X I_X", "b-x i-x", "B I", "B:X I:X"])
def test_letters_in_another_form_are_refused_by_name(labels):
    begin, inside = labels.split()
    with pytest.raises(ValueError, match=f"B-TYPE and I-TYPE. Received: {begin} and {inside}"):
        scheme_of(["O", inside, begin])


@pytest.mark.parametrize("labels", ["B-X MISC", "B-X L-X S-X", "PER-B LOC"])
def test_mixed_schemes_are_refused_by_name(labels):
    with pytest.raises(ValueError, match=f"one scheme.*Received: .*{labels.split()[-1]}"):
        scheme_of(labels.split())


@pytest.mark.parametrize(
    ("scheme", "labels", "place"),
    [
        ("IO", "PER O I-PER", None),
        ("IO", "B-PER", 0),
        ("IOE", "I-X E-X E-X I-X", None),
        ("IOE", "I-X B-X", 1),
        ("BILOU", "B-X I-X L-X U-X", None),
        ("BILOU", "B-X L-X I-X", 2),
        ("BILOU", "B-X O", 1),
        ("BILOU", "B-X E-X", 1),
    ],
)
def test_each_scheme_is_checked(scheme, labels, place):
    problem = find_problem(labels.split(), scheme)
    assert problem is None if place is None else problem[0] == place
