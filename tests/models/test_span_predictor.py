"""The span predictor against the reference: only separator and passage have logits."""

import numpy as np
import reference
from support import randomise, small_fields, weights_of

from keras_transformer.models import SpanPredictor, SpanPredictorConfig


def test_logits_equal_the_reference_and_exist_for_separator_and_passage_only():
    fields = small_fields(SpanPredictorConfig, num_layers=2)
    model = randomise(SpanPredictor(SpanPredictorConfig(**fields)))
    tokens = np.array([[5, 6, 2, 7, 8, 9, 3], [2, 7, 3, 0, 0, 0, 0], [5, 6, 7, 8, 9, 4, 3]])
    passage = np.array([[0, 0, 1, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0, 0], [0] * 7], bool)
    weights = weights_of(model)
    after = np.array([[0, 0, 1, 1, 1, 1, 1], [1] * 7, [0] * 7])  # from the separator on
    segments = reference.scope(weights, "segments")["table"][after]
    x = reference.encoder(
        reference.scope(weights, "encoder"),
        reference.embedding(reference.scope(weights, "embedding"), tokens) + segments,
        reference.everyone(7, tokens != 0),
        2,
        model.config.encoder.block.attention.num_heads,
    )
    expected = reference.dense(reference.scope(weights, "output"), x)
    logits = np.asarray(model(tokens))
    assert logits.shape == (3, 7, 2)
    np.testing.assert_allclose(logits[passage], expected[passage], rtol=0, atol=1e-4)
    assert (logits[~passage] == -1e9).all()
