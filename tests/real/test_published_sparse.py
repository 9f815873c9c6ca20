"""Sparse vectors of a BERT that was trained as SPLADE, in every form, against NumPy in float64."""

import json

import numpy as np
import pytest
from bert_in_numpy import gelu, layer_norm, linear
from bert_oracle import Bert
from forms import FORMS, Forms
from packages import SPLADE

pytestmark = pytest.mark.real

LINES = [
    "The capital of France is Paris.",
    "A dog runs over the hill.",
    "Two men are repairing the roof of a house",
    "Water boils at one hundred degrees.",
    "command line editor for text files",
    "Ünïcödé naïve café — “quotes” 東京タワー 😀 №5",
    "antidisestablishmentarianism is a long word",
    "a",
]
MOST = 256  # tokens in a vector


@pytest.fixture(scope="module")
def bert():
    return Bert(SPLADE.folder())


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sparse")
    return Forms(SPLADE.folder(), folder, LINES, conversion=("--task", "sparse_embedding"))


def weights_of(bert, line):
    """The weight of each token of the vocabulary: Formal et al. (2021), SPLADE v2, Eq. 6."""
    states, _ = bert.states(bert.token_ids(line))
    states = gelu(linear(bert.weights, "cls.predictions.transform.dense", states))
    states = layer_norm(bert.weights, "cls.predictions.transform.LayerNorm", states, 1e-12)
    table = bert.weights["bert.embeddings.word_embeddings.weight"]
    logits = states @ table.T + bert.weights["cls.predictions.bias"]
    return np.log(1 + np.maximum(logits, 0)).max(0)


@pytest.mark.parametrize("form", FORMS)
def test_weights_are_those_of_the_checkpoint(form, bert, forms):
    tolerance = 0.3 if form == "litert_int8" else 2e-4
    for line, answer in zip(LINES, forms.answers(form, LINES), strict=True):
        expected, answer = weights_of(bert, line), json.loads(answer)
        assert 0 < len(answer) <= MOST
        named = [bert.ids[token] for token in answer]
        np.testing.assert_allclose([*answer.values()], expected[named], atol=tolerance)
        others = np.delete(expected, named)
        least = min(answer.values()) if len(answer) == MOST else 0.0
        assert others.max() <= least + tolerance
