"""The token classifier against the reference; effects of padding."""

import functools

import numpy as np
import pytest
import reference
from support import randomise, sentences, small_fields, weights_of

from keras_transformer.models import TokenClassifier, TokenClassifierConfig

LABELS = ("O", "B-X", "I-X", "B-Y", "I-Y")


@functools.cache
def model_of(**changes):
    fields = small_fields(TokenClassifierConfig, num_layers=2, **changes)
    return randomise(TokenClassifier(TokenClassifierConfig(**fields, labels=LABELS)))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_logits_equal_the_reference(norm):
    """Sections 3.1 to 3.5, and a linear layer for each token."""
    model, tokens = model_of(norm=norm), sentences([13, 6, 1, 9])
    weights = weights_of(model)
    x = reference.encoder(
        reference.scope(weights, "encoder"),
        reference.embedding(reference.scope(weights, "embedding"), tokens),
        reference.everyone(13, tokens != 0),
        2,
        model.config.encoder.block.attention.num_heads,
        norm=norm,
    )
    expected = reference.dense(reference.scope(weights, "output"), x)
    logits = model(tokens)
    assert logits.dtype == "float32" and logits.shape == (4, 13, 5)
    real = tokens != 0
    np.testing.assert_allclose(np.asarray(logits)[real], expected[real], rtol=0, atol=1e-4)


def test_padding_and_neighbours_change_nothing():
    model, tokens = model_of(), sentences([13, 6, 1, 9])
    together = np.asarray(model(tokens))
    for number, length in enumerate((13, 6, 1, 9)):
        alone = np.asarray(model(tokens[number : number + 1, :length]))
        np.testing.assert_allclose(alone[0], together[number, :length], rtol=0, atol=1e-5)


@pytest.mark.parametrize("labels", [("O",), ("O", "O"), "OX", ("O", 3)])
def test_labels_must_be_distinct_strings(labels):
    with pytest.raises(ValueError, match="`labels` must .* Received: labels="):
        TokenClassifierConfig(labels=labels)
