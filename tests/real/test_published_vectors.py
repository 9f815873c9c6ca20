"""Vectors of texts by all-MiniLM-L6-v2, in every form, against NumPy in float64."""

import numpy as np
import pytest
from bert_oracle import Bert
from forms import FORMS, Forms
from packages import MINILM

pytestmark = [pytest.mark.real, pytest.mark.long]

LINES = [
    "A dog runs over the hill.",
    "Ein Hund rennt über den Hügel.",
    "dog",
    "Two men are fixing the roof of a house.",
    "Ünïcödé naïve café — “quotes”… 東京タワー 😀 №5",
    "WHO? Dr. O'Neill's e-mail: a.b@example.org, https://example.org/x?y=1#z",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "3.14159 1,000,000 $5.00 50% C++ C# .NET",
    "Привет мир. مرحبا بالعالم. नमस्ते दुनिया. 你好世界。",
    " ".join(["This sentence is one of several."] * 20),
]


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    return Forms(MINILM.folder(), tmp_path_factory.mktemp("minilm"), LINES)


def vector(bert, line):
    """The mean of the hidden states, with length 1."""
    mean = bert.states(bert.token_ids(line))[0].mean(0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("form", FORMS)
def test_vectors_are_those_of_the_checkpoint(form, forms):
    bert = Bert(MINILM.folder())
    expected = np.array([vector(bert, line) for line in LINES])
    received = np.array([answer.split() for answer in forms.answers(form, LINES)], float)
    if form == "litert_int8":
        assert (expected * received).sum(-1).min() > 0.99  # measured: 0.997
    else:
        np.testing.assert_allclose(received, expected, atol=2e-6)
