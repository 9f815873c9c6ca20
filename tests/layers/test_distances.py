"""Relative positions: shifts and padding before a sentence change nothing."""

import numpy as np
import pytest
from marks import slow_except
from support import KV, B, D, F, H, K, S, T, normal, randomise, sentences, small_config

from keras_transformer import EncoderBlock, Transformer

RELATIVE = {
    "rotary": {"position": "rotary", "d_k": 6},
    "alibi": {"position": "alibi"},
    "relative": {"position": {"kind": "relative", "distance": 4}},
    "t5": {"position": {"kind": "t5", "distance": 9, "buckets": 8}},
}
ABSOLUTE = {name: {"position": name} for name in ("sinusoidal", "learned", "binary")}


@pytest.mark.parametrize("name", slow_except([*RELATIVE, *ABSOLUTE], "binary"))
def test_padding_before_a_source_changes_nothing(name):
    """For relative positions only; with others a shifted source is a different one."""
    model = randomise(Transformer(small_config(**{**RELATIVE, **ABSOLUTE}[name])))
    source, target = sentences([S, S]), sentences([T, 7], first=2)
    before = np.pad(source, [(0, 0), (4, 0)])
    logits = [model({"source": ids, "target": target}) for ids in (source, before)]
    error = np.abs(np.subtract(*logits)).max()
    assert error < 1e-4 if name in RELATIVE else error > 0.01


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", RELATIVE)
def test_a_shifted_sentence_gives_the_same(name, causal):
    fields = {"num_heads": H, "d_ff": F, "d_k": K, "d_v": KV, "dropout": 0.0, **RELATIVE[name]}
    block = EncoderBlock(**fields, causal=causal)
    x = normal(B, T, D)
    block.build(x.shape)
    randomise(block)
    later = np.concatenate([normal(B, 3, D, seed=5), x], axis=1)
    allowed = np.arange(T + 3)[None] >= 3
    np.testing.assert_allclose(block(later, mask=allowed)[:, 3:], block(x), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["t5", "sinusoidal"])
def test_a_source_and_its_reverse_differ_except_with_alibi(name):
    """As ALiBi's docstring warns: its distances have no direction, and a memory has no order."""
    model = randomise(Transformer(small_config(**{**RELATIVE, **ABSOLUTE}[name])))
    source, target = sentences([S, 5]), sentences([T, 7], first=2)
    logits = [model({"source": ids, "target": target}) for ids in (source, source[:, ::-1])]
    error = np.abs(np.subtract(*logits)).max()
    assert error < 1e-5 if name == "alibi" else error > 0.01
