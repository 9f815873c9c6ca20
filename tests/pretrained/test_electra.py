"""ELECTRA's folders of Hugging Face's against their arithmetic in NumPy, and what is refused."""

import json

import numpy as np
import pytest
from bert_folders import random_rows
from electra_folders import TAGGER, forward, write_folder
from marks import slow_except

from keras_transformer import from_pretrained
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.training.converted import write_converted

DISCRIMINATOR = {
    "discriminator_predictions.dense.bias": np.zeros(3, "float32"),
    "discriminator_predictions.dense_prediction.bias": np.zeros(1, "float32"),
}
KINDS = {
    "labels": {},
    "an embedding of the model's width": {"embedding_size": 24},
    "labels of tokens": TAGGER,
    "discriminator": {"architectures": ["ElectraForPreTraining"], "more": DISCRIMINATOR},
}


@pytest.mark.parametrize(
    "kind", slow_except(KINDS, "an embedding of the model's width", "discriminator")
)
def test_states_and_logits(kind, tmp_path):
    settings, tensors = write_folder(tmp_path, **KINDS[kind])
    checkpoint, (ids, types) = read_checkpoint(tmp_path), random_rows({"vocab_size": 36})
    model, real = checkpoint.model, ids != 0
    expected, logits = forward(tensors, settings, ids, types)
    tokens = model.parts.input
    states = model.encoder(tokens(ids, training=False), tokens.allowed(ids), training=False)
    np.testing.assert_allclose(states.numpy()[real], expected[real], rtol=0, atol=1e-5)
    assert ("has no head" in "".join(checkpoint.notes)) == (logits is None)
    if logits is not None:
        ours, every = model(ids, training=False).numpy(), ... if logits.ndim == 2 else real
        np.testing.assert_allclose(ours[every], logits[every], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_run_computes_the_same(tmp_path):
    write_folder(tmp_path / "hf")
    texts = ["the film is good", "a bad, bad dog"]
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert open_run(run.path)(texts) == from_pretrained(tmp_path / "hf")(texts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding_size": 11}, r"word_embeddings\.weight must have the shape \[36, 11\]"),
        ({"embedding_size": 0}, "`embedding_size` must be a whole number of at least 1"),
        ({"architectures": ["ElectraForMultipleChoice"]}, "`architectures` must be one of Electra"),
        ({"position_embedding_type": "relative_key"}, "`position_embedding_type` must be 'absol"),
    ],
)
def test_settings_that_cannot_be_expressed_are_named(changes, message, tmp_path):
    settings, _ = write_folder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**settings, **changes}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


@pytest.mark.long
@pytest.mark.slow
def test_exports_answer_as_the_checkpoint(tmp_path):
    write_folder(tmp_path / "hf")
    classifier, texts = from_pretrained(tmp_path / "hf"), ["the film is good", "a bad, bad dog", ""]
    assert export_saved_model(classifier, tmp_path / "saved", texts)["agreement"] == 1
    assert export_litert(classifier, tmp_path / "m.tflite", texts)["agreement"] == 1
