"""T5 and mT5 against their arithmetic in NumPy."""

import json

import numpy as np
import opus_folders
import pytest
import sentencepiece
import t5_folders
import t5_in_numpy
from t5_folders import UNTIED, write_folder

from keras_transformer.pretrained.read import read_checkpoint


@pytest.mark.parametrize("changes", [{}, {**UNTIED, "model_type": "mt5"}], ids=["t5", "mt5"])
def test_logits_and_states(changes, tmp_path):
    settings, tensors = write_folder(tmp_path, **changes)
    model = read_checkpoint(tmp_path).model
    source = opus_folders.random_tokens(settings, (25, 6, 1))
    target = opus_folders.random_tokens(settings, (14, 3, 5), 1, start=0)
    states, logits = t5_in_numpy.forward(tensors, settings, source, target)
    real = source != 0
    found = model.encode(source)[0].numpy()[real]
    np.testing.assert_allclose(found, states[real], rtol=0, atol=1e-5)
    found = model({"source": source, "target": target}, training=False)
    np.testing.assert_allclose(found, logits, rtol=0, atol=1e-4)


def test_texts_and_sentinels(tmp_path):
    settings, _ = write_folder(tmp_path)
    source, target = read_checkpoint(tmp_path).tokenizers
    assert source is target
    spm = sentencepiece.SentencePieceProcessor(model_proto=t5_folders.spm())
    text = "the cat sat"
    assert source.encode([text]).to_list() == [[*spm.encode(text), 1]]
    first = spm.vocab_size() + 99
    assert source.pieces([first, first - 99]) == ["<extra_id_0>", "<extra_id_99>"]
    assert source.decode([[first, *spm.encode(text), 1]]).numpy()[0].decode() == text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feed_forward_proj": "gated-x"}, r"`feed_forward_proj` must be one of relu, .*'gated-x'"),
        ({"vocab_size": 9}, r"shared\.weight must have the shape \[9, 12\]"),
        ({"d_kv": 10**9}, r"SelfAttention\.q\.weight must have the shape"),
        ({"relative_attention_num_buckets": 12}, r"relative_attention_bias\.weight must have the"),
    ],
)
def test_wrong_settings_are_reported(changes, message, tmp_path):
    settings, _ = write_folder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**settings, **changes}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)
