"""ALBERT, MPNet, DeBERTa and ModernBERT against their arithmetic in NumPy, and what is refused."""

import numpy as np
import pytest
from bert_folders import TAGGER
from encoder_folders import random_rows, write_folder
from encoders_in_numpy import forward

from keras_transformer.pretrained.read import read_checkpoint

LABELS = {"id2label": TAGGER["id2label"]}
KINDS = {
    "albert": ("albert", "SequenceClassification", {}),
    "albert, pairs of blocks": ("albert", "Model", {"inner_group_num": 2, "num_hidden_groups": 1}),
    "albert, words": ("albert", "TokenClassification", LABELS),
    "mpnet": ("mpnet", "SequenceClassification", {}),
    "mpnet, words": ("mpnet", "TokenClassification", LABELS),
    "deberta": ("deberta-v2", "SequenceClassification", {}),
    "deberta, words": ("deberta-v2", "TokenClassification", LABELS),
    "deberta, also learned positions": (
        "deberta-v2", "Model",
        {"position_biased_input": True, "norm_rel_ebd": "none", "max_relative_positions": 9},
    ),
    "modernbert": ("modernbert", "SequenceClassification", {}),
    "modernbert, words": ("modernbert", "TokenClassification", LABELS),
    "modernbert, first token": ("modernbert", "SequenceClassification",
                                {"classifier_pooling": "cls"}),
    "modernbert, global": ("modernbert", "Model", {"global_attn_every_n_layers": 1}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_logits(kind, tmp_path):
    family, head, changes = KINDS[kind]
    settings, tensors = write_folder(tmp_path, family, head, **changes)
    checkpoint, (ids, types) = read_checkpoint(tmp_path), random_rows(settings)
    model, real = checkpoint.model, ids != settings["pad_token_id"]
    expected, logits = forward(tensors, settings, ids, types)
    tokens = model.parts.input
    states = model.encoder(tokens(ids, training=False), tokens.allowed(ids), training=False)
    np.testing.assert_allclose(states.numpy()[real], expected[real], rtol=0, atol=1e-5)
    assert ("has no head" in "".join(checkpoint.notes)) == (logits is None)
    if logits is not None:
        ours, every = model(ids, training=False).numpy(), ... if logits.ndim == 2 else real
        np.testing.assert_allclose(ours[every], logits[every], rtol=0, atol=1e-5)
        assert model.config.labels == tuple(settings["id2label"].values())
