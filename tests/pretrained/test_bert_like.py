"""BERT, DistilBERT, RoBERTa and ELECTRA: Hugging Face's folders against their arithmetic in NumPy.

Each family has files of its own in test_bert.py and test_roberta.py for what only it has.
"""

import dataclasses
import json
import types

import bert_folders
import bert_in_numpy
import bert_in_python
import distilbert_folders
import distilbert_in_numpy
import electra_folders
import numpy as np
import pytest
import roberta_folders
import tensorflow as tf
from marks import long, slow

from keras_transformer import from_pretrained
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pipelines import TextClassificationPipeline
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.training.converted import write_converted


@dataclasses.dataclass(frozen=True)
class Family:
    """The folders of a family, its arithmetic, the ids of a text, and kinds of checkpoints."""

    folders: types.ModuleType
    forward: callable
    ids_of: callable
    kinds: dict
    fast: tuple
    refused: list
    pad_id: int = 0

    def rows(self, settings):
        """Returns ids and token types of random texts."""
        rows = getattr(self.folders, "random_rows", bert_folders.random_rows)(settings)
        return rows if isinstance(rows, tuple) else (rows, np.zeros_like(rows))


def wordpiece_ids(text):
    ids = {piece: number for number, piece in enumerate(bert_folders.PIECES)}
    return bert_in_python.ids(text, ids, lowercase=True)


def zeros(*names):
    """Tensors of other heads, by name."""
    return {name: np.zeros(3, "float32") for name in names}


BERT = Family(
    bert_folders,
    bert_in_numpy.forward,
    wordpiece_ids,
    {
        "labels": {},
        "relu": {"hidden_act": "relu"},
        "the tanh form of gelu": {"hidden_act": "gelu_new"},
        "float16": {"dtype": "float16"},
        "a larger epsilon": {"layer_norm_eps": 1e-5},
        "without a head": bert_folders.PLAIN,
        "other heads": {
            "architectures": ["BertForPreTraining"],
            "more": zeros("cls.predictions.bias", "cls.seq_relationship.bias"),
        },
        "a buffer of ids": {"more": {"bert.embeddings.position_ids": np.arange(21)[None]}},
        "labels of tokens": bert_folders.TAGGER,
        "labels of tokens and a pooler": {
            **bert_folders.TAGGER,
            "more": {
                "bert.pooler.dense.weight": np.zeros([24, 24], "float32"),
                "bert.pooler.dense.bias": np.zeros(24, "float32"),
            },
        },
    },
    (
        "the tanh form of gelu",
        "a larger epsilon",
        "a buffer of ids",
        "labels of tokens and a pooler",
    ),
    [
        ({"model_type": "robert"}, r"`model_type` must be one of albert, .*'robert'"),
        ({"architectures": ["BertForMultipleChoice"]}, r"`architectures` must be one of Bert"),
        ({"position_embedding_type": "relative_key"}, r"`position_embedding_type` must be 'absol"),
        ({"is_decoder": True}, r"`is_decoder` must be false"),
        ({"type_vocab_size": 1}, r"`type_vocab_size` must be 2"),
        ({"problem_type": "regression"}, r"is a model of numbers, not of labels \(`problem_type`"),
        ({"problem_type": "x"}, r"`problem_type` must be null or 'single_label_cl"),
        ({"hidden_act": "gelu_fast"}, r"`hidden_act` must be one of relu, "),
        ({"id2label": {"0": "a", "2": "b"}}, r"`id2label` must be names of two labels or more"),
        ({"id2label": {"0": "a", "1": "a"}}, r"`id2label` must be names of two labels or more"),
        ({"pad_token_id": 1}, r"`pad_token_id` must be 0, the id of \[PAD\] in vocab\.txt"),
        ({"num_hidden_layers": 10**9}, r"layer\.9+\.intermediate\.dense\.weight is missing"),
        ({"intermediate_size": 10**11}, r"intermediate\.dense\.weight must have the shape \[10+, "),
        ({"max_position_embeddings": 10**11}, r"position_embeddings\.weight must have the shape"),
        ({"vocab_size": 3}, r"word_embeddings\.weight must have 3 rows, as `vocab_size` in config"),
        ({"vocab_size": 10**9}, r"word_embeddings\.weight must have 1000000000 rows"),
    ],
)
DISTILBERT = Family(
    distilbert_folders,
    lambda tensors, settings, ids, types: distilbert_in_numpy.forward(tensors, settings, ids),
    wordpiece_ids,
    {
        "labels": {},
        "relu": {"activation": "relu"},
        "float16": {"dtype": "float16"},
        "without a head": distilbert_folders.PLAIN,
        "tensors of another head": {
            **distilbert_folders.PLAIN,
            "more": {
                "vocab_transform.weight": np.zeros([24, 24], "float32"),
                "vocab_layer_norm.bias": np.zeros(24, "float32"),
                "vocab_projector.bias": np.zeros(3, "float32"),
            },
        },
        "labels of tokens": distilbert_folders.TAGGER,
    },
    ("float16", "labels of tokens"),
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
ROBERTA = Family(
    roberta_folders,
    lambda tensors, settings, ids, types: roberta_folders.forward(tensors, settings, ids),
    roberta_folders.ids_of,
    {
        "labels": {},
        "the tanh form of gelu": {"hidden_act": "gelu_new"},
        "float16": {"dtype": "float16"},
        "without a head": roberta_folders.PLAIN,
        "labels of tokens": roberta_folders.TAGGER,
        "tensors of another head": {
            **roberta_folders.PLAIN,
            "more": zeros("lm_head.bias", "lm_head.dense.bias"),
        },
    },
    ("float16", "tensors of another head"),
    [
        ({"architectures": ["RobertaForMultipleChoice"]}, "`architectures` must be one of R"),
        ({"type_vocab_size": 2}, "`type_vocab_size` must be 1"),
        ({"pad_token_id": 0}, "`pad_token_id` must be 1"),
        ({"is_decoder": True}, "`is_decoder` must be false"),
        ({"position_embedding_type": "relative_key"}, "`position_embedding_type` must be 'absol"),
        ({"num_hidden_layers": 10**9}, r"layer\.9+\.intermediate\.dense\.weight is missing"),
        ({"intermediate_size": 10**11}, r"dense\.weight must have the shape \[10+, 24\]"),
        ({"max_position_embeddings": 10**11}, r"position_embeddings\.weight must have the shape"),
        ({"max_position_embeddings": 2}, "`max_position_embeddings` must be a whole number of at"),
        ({"vocab_size": 10**9}, r"word_embeddings\.weight must have 1000000000 rows"),
    ],
    pad_id=1,
)
ELECTRA = Family(
    electra_folders,
    electra_folders.forward,
    wordpiece_ids,
    {
        "labels": {},
        "an embedding of the model's width": {"embedding_size": 24},
        "labels of tokens": electra_folders.TAGGER,
        "discriminator": {
            "architectures": ["ElectraForPreTraining"],
            "more": zeros(
                "discriminator_predictions.dense.bias",
                "discriminator_predictions.dense_prediction.bias",
            ),
        },
    },
    ("an embedding of the model's width", "discriminator"),
    [
        ({"embedding_size": 11}, r"word_embeddings\.weight must have the shape \[36, 11\]"),
        ({"embedding_size": 0}, "`embedding_size` must be a whole number of at least 1"),
        ({"architectures": ["ElectraForMultipleChoice"]}, "`architectures` must be one of Electra"),
        ({"position_embedding_type": "relative_key"}, "`position_embedding_type` must be 'absol"),
    ],
)
FAMILIES = {"bert": BERT, "distilbert": DISTILBERT, "roberta": ROBERTA, "electra": ELECTRA}
KINDS = [
    (name, kind) if kind in family.fast else slow(name, kind)
    for name, family in FAMILIES.items()
    for kind in family.kinds
]
REFUSED = [(name, *row) for name, family in FAMILIES.items() for row in family.refused]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_states_and_logits(name, kind, tmp_path):
    family = FAMILIES[name]
    settings, tensors = family.folders.write_folder(tmp_path, **family.kinds[kind])
    checkpoint, (ids, types) = read_checkpoint(tmp_path), family.rows(settings)
    model, real = checkpoint.model, ids != family.pad_id
    expected, logits = family.forward(tensors, settings, ids, types)
    tokens = model.parts.input
    states = model.encoder(tokens(ids, training=False), tokens.padding_mask(ids), training=False)
    np.testing.assert_allclose(states.numpy()[real], expected[real], rtol=0, atol=1e-5)
    assert model.config.max_length == 21
    assert ("has no head" in "".join(checkpoint.notes)) == (logits is None)
    if logits is not None:
        assert len(model.config.head.labels) == logits.shape[-1]
        ours, every = model(ids, training=False).numpy(), ... if logits.ndim == 2 else real
        np.testing.assert_allclose(ours[every], logits[every], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", slow("distilbert"), slow("roberta"), slow("electra")])
def test_texts_get_the_labels_of_the_checkpoint(name, tmp_path):
    family = FAMILIES[name]
    # With a tokenizer.json instead of lists of tokens, which ELECTRA's folders always have.
    options = {} if name == "electra" else {"lines": False}
    settings, tensors = family.folders.write_folder(tmp_path / "hf", **options)
    classifier, texts = from_pretrained(tmp_path / "hf"), bert_folders.TEXTS
    if name == "roberta":
        texts = roberta_folders.TEXTS
    assert isinstance(classifier, TextClassificationPipeline)
    for text, found in zip(texts, classifier.classify(texts), strict=True):
        row = family.ids_of(text)
        assert found.truncated == (len(row) > 21)
        row = np.array([[*row[:-1][:20], row[-1]]])
        _, logits = family.forward(tensors, settings, row, np.zeros_like(row))
        shares = np.exp(logits[0]) / np.exp(logits[0]).sum()
        np.testing.assert_allclose(found.probabilities, shares, rtol=0, atol=1e-5)
        assert found.label == settings["id2label"][str(shares.argmax())]
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert open_run(run.path)(texts) == classifier(texts)


@pytest.mark.parametrize(("name", "changes", "message"), REFUSED)
def test_settings_that_cannot_be_expressed_are_named(name, changes, message, tmp_path):
    settings, _ = FAMILIES[name].folders.write_folder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**settings, **changes}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value)
    # Our own configuration does not know the file.
    assert str(tmp_path) in str(error.value) or message.startswith("`d_model`")


@pytest.mark.parametrize("name", [long(name) for name in FAMILIES])
def test_a_saved_model_of_strings_and_a_tflite_file_of_ids(name, tmp_path):
    """Both are kept only if they answer as the model in memory does."""
    FAMILIES[name].folders.write_folder(tmp_path / "hf")
    classifier, texts = from_pretrained(tmp_path / "hf"), bert_folders.TEXTS
    assert export_saved_model(classifier, tmp_path / "saved", texts)["agreement"] == 1
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        feed = {signature.inputs["sentences"].name: [text.encode() for text in texts]}
        labels = session.run(signature.outputs["label"].name, feed)
    assert [label.decode() for label in labels] == classifier(texts)
    assert export_litert(classifier, tmp_path / "m.tflite", texts)["agreement"] == 1
