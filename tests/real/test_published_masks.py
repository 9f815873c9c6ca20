"""Words for masks by a BERT that was trained as SPLADE, in every form, against NumPy in float64."""

import numpy as np
import pytest
from bert_in_numpy import gelu, layer_norm, linear
from bert_oracle import Bert, log_softmax
from forms import FORMS, Forms
from packages import SPLADE

pytestmark = pytest.mark.real

LINES = [
    "The capital of France is [MASK].",
    "A dog [MASK] over the hill.",
    "Two men are [MASK] the roof of a house",
    "A little girl is sitting in front of a [MASK] rainbow.",
    "Water boils at one hundred [MASK].",
    "The [MASK] barked at the postman all morning.",
    "She plays the [MASK] in a large orchestra, and he sings.",
    "My favourite season is [MASK], when the leaves fall.",
    "[MASK] is the largest planet of the solar system.",
    "He paid for the bread with a ten euro [MASK]; she had no change.",
    "Ünïcödé naïve café — “quotes” [MASK] 東京タワー 😀 №5",
    "antidisestablishmentarianism is a long [MASK]",
]


@pytest.fixture(scope="module")
def bert():
    return Bert(SPLADE.folder())


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    return Forms(SPLADE.folder(), tmp_path_factory.mktemp("splade"), LINES)


def probabilities(bert, line):
    """Returns the probability of each token of the vocabulary for the mask of a line."""
    ids = bert.token_ids(line)
    states, _ = bert.states(ids)
    state = states[ids.index(bert.ids["[MASK]"])]
    state = gelu(linear(bert.weights, "cls.predictions.transform.dense", state))
    state = layer_norm(bert.weights, "cls.predictions.transform.LayerNorm", state, 1e-12)
    table = bert.weights["bert.embeddings.word_embeddings.weight"]
    return np.exp(log_softmax(state @ table.T + bert.weights["cls.predictions.bias"]))


@pytest.mark.parametrize("form", FORMS)
def test_words_and_probabilities_are_those_of_the_checkpoint(form, bert, forms):
    """`predict` prints four decimals; int8 may move a probability by at most 0.03."""
    tolerance = 0.03 if form == "litert_int8" else 6e-5
    answers = forms.answers(form, LINES)
    assert len(answers) == len(LINES)
    for line, answer in zip(LINES, answers, strict=True):
        expected = probabilities(bert, line)
        columns = answer.split("\t")
        words, received = columns[::2], [float(number) for number in columns[1::2]]
        assert len(words) == 5
        np.testing.assert_allclose(received, [expected[bert.ids[w]] for w in words], atol=tolerance)
        # No word that is left out is more probable than the last one that is named.
        others = np.delete(expected, [bert.ids[word] for word in words])
        assert others.max() <= received[-1] + tolerance
