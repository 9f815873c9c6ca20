"""Vectors of texts by published sentence encoders, in every form, against NumPy in float64."""

import functools

import numpy as np
import pytest
from bert_oracle import Bert, MPNet
from forms import FORMS, Forms
from packages import MINILM, MPNET

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


# Each model with its package, its oracle and the forms that are compared.
MODELS = {
    "minilm": (MINILM, Bert, FORMS),
    "mpnet": (MPNET, MPNet, ("run", "saved_model", "litert", "litert_int8")),
}
CASES = [(name, form) for name, (_, _, forms) in MODELS.items() for form in forms]
SMALLEST_COSINE = 0.99  # in int8; measured: 0.997 and 0.992


@functools.cache
def oracle(name):
    """The vectors of the lines, [N, D]: means of the hidden states, with length 1."""
    package, model, _ = MODELS[name]
    bert = model(package.folder())
    means = np.array([bert.states(bert.token_ids(line))[0].mean(0) for line in LINES])
    return means / np.linalg.norm(means, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """Returns the forms of a model by its name."""

    @functools.cache
    def of(name):
        return Forms(MODELS[name][0].folder(), tmp_path_factory.mktemp(name), LINES)

    return of


@pytest.mark.parametrize(("name", "form"), CASES)
def test_vectors_are_those_of_the_checkpoint(name, form, forms, record_property):
    expected = oracle(name)
    received = np.array([line.split() for line in forms(name).answers(form, LINES)], float)
    cosine, largest = (expected * received).sum(-1).min(), np.abs(expected - received).max()
    record_property("largest difference", float(largest))
    record_property("smallest cosine", float(cosine))
    if form == "litert_int8":
        assert cosine > SMALLEST_COSINE
    else:
        np.testing.assert_allclose(received, expected, atol=2e-6)
