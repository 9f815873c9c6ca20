"""The generated sentences: exact spans, reproducible, and no content in two splits."""

from types import SimpleNamespace

import pytest

from keras_transformer.tasks.token_classification.spans import find_problem, labels_of, spans_of
from keras_transformer.training.demos.entities import SENTENCES, draw_sentences
from keras_transformer.training.settings.sources import open_source

TYPES = {"DATE", "MONEY", "COUNTRY", "LANGUAGE", "DURATION", "MEASURE"}


def settings(**changes):
    values = {"source": "entities", "examples": 400, "seed": 1, "scheme": "BIO"}
    return SimpleNamespace(**{**values, **changes})


def examples(data, split):
    return [tuple(text.decode() for text in row) for row in data.rows(split).as_numpy_iterator()]


def content(words, labels):
    words = words.split()
    return tuple(" ".join(words[s.begin : s.end]) for s in spans_of(labels.split()))


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
def test_spans_are_exact(scheme):
    """A sentence without its spans is one of the templates."""
    frames = {" ".join("*" if w.isupper() and len(w) > 1 else w for w in frame.split())
              for frame in SENTENCES}  # fmt: skip
    data, types = open_source(settings(scheme=scheme)), set()
    for words, labels in examples(data, "train"):
        words, labels = words.split(), labels.split()
        spans = spans_of(labels)
        assert len(words) == len(labels) and find_problem(labels, scheme) is None
        assert labels_of(spans, len(words), scheme) == labels
        types |= {span.type for span in spans}
        for span in reversed(spans):
            words[span.begin : span.end] = ["*"]
        assert " ".join("#" if word.isdigit() else word for word in words) in frames
    assert types == TYPES


def test_no_content_is_in_two_splits_or_occurs_twice():
    data = open_source(settings())
    assert [data.count(split) for split in data.splits] == [320, 40, 40]
    every = [content(*row) for split in data.splits for row in examples(data, split)]
    assert len(set(every)) == len(every) == 400


@pytest.mark.slow
def test_the_seed_determines_the_sentences():
    assert draw_sentences(50, 3) == draw_sentences(50, 3) != draw_sentences(50, 4)
