"""DistilBERT's folders of Hugging Face's against their arithmetic in NumPy, and what is refused."""

import json

import bert_in_python
import distilbert_in_numpy
import numpy as np
import pytest
import tensorflow as tf
from bert_folders import PIECES, TEXTS, random_rows
from distilbert_folders import PLAIN, TAGGER, write_folder
from marks import slow_except

from keras_transformer import Classifier, TokenLabeller, from_pretrained
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pretrained.read import read_checkpoint

HEADS = {
    "vocab_transform.weight": np.zeros([24, 24], "float32"),
    "vocab_layer_norm.bias": np.zeros(24, "float32"),
    "vocab_projector.bias": np.zeros(3, "float32"),
}
KINDS = {
    "labels": {},
    "relu": {"activation": "relu"},
    "float16": {"dtype": "float16"},
    "without a head": PLAIN,
    "tensors of another head": {**PLAIN, "more": HEADS},
    "labels of tokens": TAGGER,
}


@pytest.mark.parametrize("kind", slow_except(KINDS, "float16", "labels of tokens"))
def test_states_and_logits(kind, tmp_path):
    settings, tensors = write_folder(tmp_path, **KINDS[kind])
    checkpoint = read_checkpoint(tmp_path)
    model, (ids, _) = checkpoint.model, random_rows(settings)
    expected, logits = distilbert_in_numpy.forward(tensors, settings, ids)
    tokens, real = model.parts.input, ids != 0
    states = model.encoder(tokens(ids, training=False), tokens.allowed(ids), training=False)
    np.testing.assert_allclose(states.numpy()[real], expected[real], rtol=0, atol=1e-5)
    assert ("has no head" in "".join(checkpoint.notes)) == (logits is None)
    if logits is not None:
        ours, every = model(ids, training=False).numpy(), ... if logits.ndim == 2 else real
        np.testing.assert_allclose(ours[every], logits[every], rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [True, False])
def test_texts_get_the_labels_of_the_checkpoint(lines, tmp_path):
    settings, tensors = write_folder(tmp_path, lines=lines)
    classifier = from_pretrained(tmp_path)
    assert isinstance(classifier, Classifier)
    ids = {piece: number for number, piece in enumerate(PIECES)}
    for text, found in zip(TEXTS, classifier.classify(TEXTS), strict=True):
        row = bert_in_python.ids(text, ids, lowercase=True)
        row = np.array([[*row[:-1][:20], row[-1]]])
        _, logits = distilbert_in_numpy.forward(tensors, settings, row)
        shares = np.exp(logits[0]) / np.exp(logits[0]).sum()
        np.testing.assert_allclose(found.probabilities, shares, rtol=0, atol=1e-5)
        assert found.label == settings["id2label"][str(shares.argmax())]


@pytest.mark.slow
def test_words_get_labels(tmp_path):
    write_folder(tmp_path, **TAGGER)
    labeller = from_pretrained(tmp_path)
    assert isinstance(labeller, TokenLabeller)
    assert [len(row.labels) for row in labeller.answer(["a dogs runs.", "", "bad"])] == [3, 0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["DistilBertForMultipleChoice"]}, "`architectures` must be one of D"),
        ({"problem_type": "regression"}, r"is a model of numbers, not of labels"),
        ({"activation": "gelu_fast"}, r"`activation` must be one of relu, "),
        ({"n_heads": 5}, r"`d_model` must be divisible by `num_heads`"),
        ({"n_layers": 10**9}, r"layer\.9+\.ffn\.lin1\.weight is missing"),
        ({"hidden_dim": 10**11}, r"lin1\.weight must have the shape \[10+, 24\]"),
        ({"max_position_embeddings": 10**11}, r"position_embeddings\.weight must have the shape"),
        ({"vocab_size": 10**9}, r"word_embeddings\.weight must have 1000000000 rows"),
    ],
)
def test_settings_that_cannot_be_expressed_are_named(changes, message, tmp_path):
    write_folder(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, **changes}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value)


def test_tensors_without_a_place_and_files_that_are_missing_are_named(tmp_path):
    write_folder(tmp_path, more={"distilbert.strange": np.zeros(3, "float32")})
    with pytest.raises(ValueError, match=r"Unused: distilbert\.strange\."):
        read_checkpoint(tmp_path)
    write_folder(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"pickle.*import AutoModelForSequenceClassification as M"):
        read_checkpoint(tmp_path)


@pytest.mark.long
@pytest.mark.slow
def test_a_saved_model_of_strings_and_a_tflite_file_of_ids(tmp_path):
    """Both are kept only if they answer as the model in memory does."""
    write_folder(tmp_path / "hf")
    classifier = from_pretrained(tmp_path / "hf")
    assert export_saved_model(classifier, tmp_path / "saved", TEXTS)["agreement"] == 1
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        feed = {signature.inputs["sentences"].name: [text.encode() for text in TEXTS]}
        labels = session.run(signature.outputs["label"].name, feed)
    assert [label.decode() for label in labels] == classifier(TEXTS)
    assert export_litert(classifier, tmp_path / "m.tflite", TEXTS)["agreement"] == 1
