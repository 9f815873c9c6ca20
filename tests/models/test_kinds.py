"""Whole models with every position and every score against the reference."""

import numpy as np
import pytest
import reference
from marks import rows
from models.test_language_model import lm_config, logits_of_the_reference
from support import randomise, sentences, small_config, weights_of

from keras_transformer import LanguageModel, Transformer

T5 = {"position": {"kind": "t5", "distance": 7, "buckets": 8}}
KINDS = {
    "binary": {"position": "binary", "score": "dot_product"},
    "rotary": {"position": "rotary", "d_k": 6, "score": "general"},
    "relative": {"position": {"kind": "relative", "distance": 3}, "score": "general"},
    "relative, default": {"position": "relative", "norm": "pre"},
    "alibi": {"position": "alibi", "score": "additive"},
    "t5": {**T5, "score": "dot_product"},
    "t5, default": {"position": "t5", "attention_bias": True},
}
each_kind = pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
MODEL = {"rtol": 0, "atol": 1e-4}


@pytest.mark.parametrize(
    "changes",
    rows(KINDS, ["t5, default"], slow=KINDS),
)
def test_logits_and_every_attention_weight(changes):
    model = randomise(Transformer(small_config(**changes)))
    source, target, record = sentences([7, 5]), sentences([11, 6], first=2), {}
    expected = reference.transformer(weights_of(model), model.config, source, target, record)
    inputs = {"source": source, "target": target}
    np.testing.assert_allclose(model(inputs), expected, **MODEL)
    for name, weights in model.attention_weights(inputs).items():
        side, block, attention = name.split("/")
        np.testing.assert_allclose(weights, record[side][block][attention], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    rows(KINDS, ["t5, default"], slow=["rotary", "alibi"]),
)
def test_logits_of_a_language_model(changes):
    model = randomise(LanguageModel(lm_config(**changes)))
    tokens = sentences([11, 6], first=2)
    expected = logits_of_the_reference(model, tokens)
    np.testing.assert_allclose(model(tokens), expected, **MODEL)
    cache = model.decoder.empty_cache(len(tokens), tokens.shape[1])
    for t in range(tokens.shape[1]):
        logits, cache, _ = model.step(tokens[:, t : t + 1], cache, t)
        np.testing.assert_allclose(logits[:, 0], expected[:, t], **MODEL)
