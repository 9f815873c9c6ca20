"""XLM-RoBERTa and CamemBERT: ids by SentencePiece, arithmetic by NumPy, and what is refused."""

import json

import numpy as np
import pytest
import tensorflow as tf
from roberta_folders import TAGGER, forward
from unigram_folders import CLASSES, FAMILIES, TEXTS, ids_of, write_folder

from keras_transformer import from_pretrained
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.training.converted import write_converted


def probabilities(logits):
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "as_json"), [("xlm-roberta", True), ("camembert", False)])
def test_texts_get_the_labels_of_the_checkpoint(family, as_json, tmp_path):
    settings, tensors = write_folder(tmp_path / "hf", family, as_json)
    classifier = from_pretrained(tmp_path / "hf")
    for text, found in zip(TEXTS, classifier.classify(TEXTS), strict=True):
        row = ids_of(family, text)
        assert classifier.tokenizers.source.encode([text]).to_list() == [row]
        assert found.truncated == (len(row) > 21)
        row = np.array([[*row[:-1][:20], row[-1]]])
        shares = probabilities(forward(tensors, settings, row)[1][0])
        np.testing.assert_allclose(found.probabilities, shares, rtol=0, atol=1e-5)
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert open_run(run.path)(TEXTS) == classifier(TEXTS)


@pytest.mark.parametrize("family", FAMILIES)
def test_both_files_are_one_vocabulary(family, tmp_path):
    settings, _ = write_folder(tmp_path / "json", family)
    write_folder(tmp_path / "model", family, as_json=False)
    one, two = (read_checkpoint(tmp_path / kind).tokenizers.source for kind in ("json", "model"))
    assert one.encode(TEXTS).to_list() == two.encode(TEXTS).to_list()
    size = settings["vocab_size"]
    assert one.pieces(range(size)) == two.pieces(range(size))
    texts = ["a good film", "cats"]
    assert [text.decode() for text in one.decode(one.tokenize(texts)).numpy()] == texts


def test_random_segmentations_begin_with_the_first_token(tmp_path):
    """It is the token that the encoder's output is pooled at."""
    write_folder(tmp_path)
    tokenizer = read_checkpoint(tmp_path).tokenizers.source
    texts = ["a good film", "cats", ""]
    drawn = [row for seed in range(5) for row in tokenizer.sample(texts, 0.5, seed)]
    assert {row[0] for row in drawn} == {tokenizer.bos_id}
    ends = tf.ragged.constant([[*row, tokenizer.eos_id] for row in drawn])
    assert [text.decode() for text in tokenizer.decode(ends).numpy()] == texts * 5


def test_words_get_the_labels_of_the_checkpoint(tmp_path):
    tagger = {**TAGGER, "architectures": ["XLMRobertaForTokenClassification"]}
    settings, tensors = write_folder(tmp_path, **tagger)
    texts, names = ["A dog is running.", "good ☃ film", ""], [*settings["id2label"].values()]
    for text, found in zip(texts, from_pretrained(tmp_path).answer(texts), strict=True):
        row, first = [0], []
        for word in text.split():
            first.append(len(row))
            row += ids_of("xlm-roberta", word)[1:-1]
        assert [*row, 2] == ids_of("xlm-roberta", text)
        logits = forward(tensors, settings, np.array([[*row, 2]]))[1][0]
        assert found.labels == tuple(names[logits[place].argmax()] for place in first)


def test_words_of_tokens_are_quotes(tmp_path):
    write_folder(tmp_path)
    tokenizer = read_checkpoint(tmp_path).tokenizers.source
    text = " the  caf\u00e9\u3000dogs running\n☃ "
    ids, begins, ends = (x.to_list()[0] for x in tokenizer.tokenize_with_words([text]))
    assert ids == ids_of("xlm-roberta", text)[1:-1]
    words = [text.encode()[a:b].decode() for a, b in zip(begins, ends, strict=True)]
    counts = [len(ids_of("xlm-roberta", word)) - 2 for word in text.split()]
    assert words == [w for w, n in zip(text.split(), counts, strict=True) for _ in range(n)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["model"].update(type="BPE"), "`model` must be of the type Unigram"),
        (lambda c: c["model"].update(vocab={}), "`vocab` must be a list of pairs of token and sc"),
        (lambda c: c["model"]["vocab"].append(["x", None]), "`vocab` must be a list of pairs of t"),
        (lambda c: c["model"]["vocab"].append(["x", 1e999]), "`vocab` must be a list of pairs of"),
        (lambda c: c["model"]["vocab"].append(["x", 10**400]), "`vocab` must be a list of pairs o"),
        (lambda c: c["model"]["vocab"].append(["<s>", 0]), "must differ. Received twice: '<s>'"),
        (lambda c: c["model"]["vocab"].append(["x", 0]), "from 0 to below .*'x'"),
        (lambda c: c["model"].update(unk_id=2), "`unk_id` must be the id of <unk>"),
        (lambda c: c["model"].update(byte_fallback=True), "`byte_fallback` must be false"),
        (lambda c: c.update(pre_tokenizer=None), "`pre_tokenizer` must be one that puts"),
        (lambda c: c["pre_tokenizer"]["pretokenizers"].reverse(), "`pre_tokenizer` must be one th"),
        (lambda c: c["normalizer"].update(type="Nmt"), "`normalizer` must be the rules of Sente"),
        (lambda c: c["normalizer"].update(precompiled_charsmap="~"), "`normalizer` must be rules"),
        (lambda c: c["post_processor"]["single"].pop(0), "`post_processor` must be one that puts"),
    ],
)
def test_vocabularies_that_cannot_be_expressed_are_named(change, message, tmp_path):
    write_folder(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    change(content)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_files_that_do_not_fit_are_named(tmp_path):
    write_folder(tmp_path, as_json=False)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"x" * 100)
    with pytest.raises(ValueError, match=r"sentencepiece\.bpe\.model: not a SentencePiece model"):
        read_checkpoint(tmp_path)
    (tmp_path / "sentencepiece.bpe.model").unlink()
    with pytest.raises(ValueError, match=r"sentencepiece\.bpe\.model is missing"):
        read_checkpoint(tmp_path)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("head", ["SequenceClassification", "QuestionAnswering"])
def test_exports_answer_as_the_checkpoint(head, tmp_path):
    family = "camembert"
    write_folder(tmp_path / "hf", family, architectures=[f"{CLASSES[family]}For{head}"])
    pipeline, texts = from_pretrained(tmp_path / "hf"), TEXTS
    if head == "QuestionAnswering":
        texts = [("the dog", text) for text in TEXTS]
    assert export_saved_model(pipeline, tmp_path / "saved", texts)["agreement"] == 1
    assert export_litert(pipeline, tmp_path / "m.tflite", texts)["agreement"] == 1
    if head == "SequenceClassification":
        loaded = tf.saved_model.load(str(tmp_path / "saved/1"))
        labels = loaded.signatures["serving_default"](sentences=tf.constant(TEXTS))["label"]
        assert [label.decode() for label in labels.numpy()] == pipeline(TEXTS)
