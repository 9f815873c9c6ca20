"""Hidden states after the embeddings of some tokens are cut off."""

import numpy as np
import pytest
from marks import slow_except
from support import S, T, randomise, sentences, small_fields

from keras_transformer import LanguageModel, PositionalEmbedding
from keras_transformer.models import (
    LanguageModelConfig,
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)

CUT = 7  # the token whose embeddings are cut off, wherever it is


def tokens_of(length, seed=0):
    """Two rows that contain the token, the second one followed by padding."""
    tokens = sentences([length, length - 2], seed=seed)
    tokens[:, [0, 3]] = CUT
    return tokens


def test_a_cut_embedding_is_its_position_alone():
    embedding = randomise(PositionalEmbedding(19, 6, "learned", max_length=5))
    tokens = np.array([[3, 7, 5, 7]])
    whole, positions = embedding(tokens).numpy()[0], embedding.weights[1].numpy()
    cut = embedding(tokens, kept=np.array([[True, False, True, True]])).numpy()[0]
    np.testing.assert_array_equal(cut[[0, 2, 3]], whole[[0, 2, 3]])
    np.testing.assert_array_equal(cut[1], positions[1])


@pytest.mark.parametrize("kept", [[[True]], [True] * 3, [[True] * 3], [[1.0] * 3] * 2])
def test_a_choice_that_does_not_fit_the_tokens_is_refused(kept):
    embedding = PositionalEmbedding(19, 6)
    with pytest.raises(ValueError, match=r"`kept` must be boolean, one .* of shape \(2, 3\)"):
        embedding(np.ones((2, 3), "int32"), kept=np.array(kept))


def model_of(model_class, config_class, **changes):
    return randomise(model_class(config_class(**small_fields(config_class), **changes)))


def language_model(_):
    return model_of(LanguageModel, LanguageModelConfig), tokens_of(T)


def several_texts(_):
    """A row of two texts."""
    documents, places = np.repeat([1, 2], [4, T - 4]), np.r_[:4, : T - 4]
    inputs = {"documents": np.tile(documents, (2, 1)), "places": np.tile(places, (2, 1))}
    return language_model(_)[0], {"tokens": tokens_of(T), **inputs}


MODELS = {
    "Transformer": lambda small_model: (
        small_model(),
        {"source": tokens_of(S), "target": tokens_of(T, seed=1)},
    ),
    "two tables": lambda small_model: (
        small_model(tie="none", target_vocab_size=23, position="learned"),
        {"source": tokens_of(S), "target": tokens_of(T, seed=1)},
    ),
    "language model": language_model,
    "several texts in a row": several_texts,
    "masked language model": lambda _: (
        model_of(MaskedLanguageModel, MaskedLanguageModelConfig, embedding_size=6),
        tokens_of(S),
    ),
}


@pytest.mark.parametrize("name", slow_except(MODELS, *[*MODELS][:2]))
def test_a_cutoff_is_a_row_of_zeros_in_the_table(name, small_model):
    model, inputs = MODELS[name](small_model)
    whole = model.hidden_states(inputs).numpy()
    cut = model.hidden_states(inputs, cutoff=lambda tokens: tokens != CUT).numpy()
    kept = model.hidden_states(inputs, cutoff=lambda tokens: tokens == tokens).numpy()
    for embedding in model.embeddings:
        rows = np.array(embedding.table.numpy())
        rows[CUT] = 0
        embedding.table.assign(rows)
    np.testing.assert_allclose(cut, model.hidden_states(inputs), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(kept, whole)
    assert np.abs(cut - whole).max() > 0.1


@pytest.mark.parametrize("side", ["source", "target"])
def test_both_sides_are_cut(side, small_model):
    """The token on the other side is not the one that is cut off."""
    model, inputs = MODELS["Transformer"](small_model)
    other = {"source": "target", "target": "source"}[side]
    inputs[other] = np.where(inputs[other] == CUT, 5, inputs[other])
    cut = model.hidden_states(inputs, cutoff=lambda tokens: tokens != CUT)
    assert np.abs(cut - model.hidden_states(inputs)).max() > 0.1
