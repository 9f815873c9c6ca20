"""Hugging Face's checkpoints of BERT against their arithmetic in NumPy; refused checkpoints."""

import json
import re

import bert_in_numpy
import bert_in_python
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from bert_folders import (
    PIECES,
    PLAIN,
    SIZES,
    TAGGER,
    TEXTS,
    random_rows,
    tokenizer_json,
    write_folder,
)
from click.testing import CliRunner

from keras_transformer import from_pretrained
from keras_transformer.cli.main import cli
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pipelines import Run, TextClassificationPipeline, TokenClassificationPipeline
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.training.converted import write_converted

WORDS = ("good", "bad")
FINE_TUNING = """
[task]
kind = "classification"
[model]
start_from = "run"
parts = ["input", "encoder"]
[data]
source = "text"
train = "train.tsv"
validation = "train.tsv"
max_length = 20
batch_tokens = 400
[schedule]
kind = "linear"
warmup_steps = 5
peak = 0.003
[training]
updates = 60
validate_every = 60
checkpoint_every = 60
precision = "float32"
"""


def states(model, ids):
    tokens = model.parts.input
    return model.encoder(tokens(ids, training=False), tokens.padding_mask(ids), training=False)


def assert_equal_to_numpy(model, settings, tensors):
    """Compares hidden states of pairs of texts, and logits if the file has a head."""
    ids, types = random_rows(settings)
    expected, logits = bert_in_numpy.forward(tensors, settings, ids, types)
    real = ids != 0
    np.testing.assert_allclose(states(model, ids).numpy()[real], expected[real], rtol=0, atol=1e-5)
    if logits is not None:
        ours, every = model(ids, training=False).numpy(), ... if logits.ndim == 2 else real
        np.testing.assert_allclose(ours[every], logits[every], rtol=0, atol=1e-5)


def test_tensorflow_names_of_norms_are_read(tmp_path):
    settings, tensors = write_folder(tmp_path)
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    renamed = {}
    for name, values in tensors.items():
        for new, old in names.items():
            name = name.replace(new, old)
        renamed[name] = values.astype("float32")
    safetensors.numpy.save_file(renamed, tmp_path / "model.safetensors")
    assert_equal_to_numpy(read_checkpoint(tmp_path).model, settings, tensors)


@pytest.mark.slow
def test_words_get_the_labels_of_the_checkpoint(tmp_path):
    """Each has the label of its first token, in a pipeline and in a run."""
    settings, tensors = write_folder(tmp_path / "hf", **TAGGER)
    token_classifier = from_pretrained(tmp_path / "hf")
    assert isinstance(token_classifier, TokenClassificationPipeline)
    ids = {piece: number for number, piece in enumerate(PIECES)}
    texts = ["A dogs is running.", "the film, not good", ""]
    for text, found in zip(texts, token_classifier.answer(texts), strict=True):
        row, first = [ids["[CLS]"]], []
        for word in text.split():
            first.append(len(row))
            row += bert_in_python.ids(word, ids, lowercase=True)[1:-1]
        row = np.array([[*row, ids["[SEP]"]]])
        assert row[0].tolist() == bert_in_python.ids(text, ids, lowercase=True)
        _, logits = bert_in_numpy.forward(tensors, settings, row, np.zeros_like(row))
        names = [*settings["id2label"].values()]
        assert found.labels == tuple(names[logits[0, place].argmax()] for place in first)
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert Run(run.path).task() == "token_classification"
    assert TokenClassificationPipeline.from_run(run.path)(texts) == token_classifier(texts)


@pytest.mark.slow
def test_a_run_contains_the_model_its_vocabulary_and_its_labels(tmp_path):
    write_folder(tmp_path / "hf", _name_or_path="me/bert-mini")
    checkpoint = read_checkpoint(tmp_path / "hf")
    run = write_converted(checkpoint, tmp_path / "run")
    assert Run(run.path).task() == "classification"
    origin = {"format": "bert", "name": "hf", "license": None, "base": "me/bert-mini"}
    assert run.read_origin() == origin
    ours, theirs = TextClassificationPipeline.from_run(run.path), from_pretrained(tmp_path / "hf")
    assert ours.model.config == theirs.model.config
    assert [r.label for r in ours.classify(TEXTS)] == [r.label for r in theirs.classify(TEXTS)]
    assert ours.tokenizers.files() == theirs.tokenizers.files()


def change_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["model"].update(type="BPE"), r"`model` must be of the type WordPiece"),
        (lambda c: c.update(normalizer=None), r"`normalizer` must be of the type BertNormalizer"),
        (lambda c: c["model"].update(vocab=[]), r"`vocab` must be a dictionary from tokens"),
        (
            lambda c: c["model"]["vocab"].update({"x": 10**9}),
            r"ids must be whole .*'x': 1000000000",
        ),
        (lambda c: c["model"]["vocab"].pop("[SEP]"), r"the piece '\[SEP\]', which is `eos`"),
        (lambda c: c["added_tokens"].append({"id": 1}), r"`added_tokens` must have a `content`"),
        (lambda c: c["model"].update(continuing_subword_prefix="@@"), r"_prefix` must be '##'"),
        (lambda c: c.update(post_processor=None), r"`post_processor` must be one that puts \[CLS"),
        (lambda c: c["post_processor"].update(type="Other"), r"`post_processor` must be one that"),
        (lambda c: c["post_processor"]["single"].pop(0), r"`post_processor` must be one that puts"),
        (lambda c: c["post_processor"]["special_tokens"]["[SEP]"].update(ids=[7]), "`post_proc"),
        (lambda c: c["added_tokens"].append({"id": 5, "content": "dog"}), "'dog' the id.*7. Rec"),
    ],
)
def test_vocabularies_that_cannot_be_expressed_are_reported(change, message, tmp_path):
    write_folder(tmp_path, lines=False)
    assert tokenizer_json() == json.loads((tmp_path / "tokenizer.json").read_text())
    change_json(tmp_path / "tokenizer.json", change)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"added_tokens.json": {"covid": 5}},
            r"added_tokens\.json: the tokens .*'covid'",
        ),
        ({"added_tokens.json": {"[MASK]": 5}}, r"must be special tokens. Received: '\[MASK\]'"),
        ({"added_tokens.json": {"x": "5"}}, "must have a `content` and an `id`"),
        (
            {"tokenizer_config.json": {"added_tokens_decoder": {"5": {"content": "covid"}}}},
            r"tokenizer_config\.json: `added_tokens_decoder` must be special tokens.*'covid'",
        ),
        (
            {"tokenizer_config.json": {"added_tokens_decoder": []}},
            "must be a dictionary from ids to tokens",
        ),
    ],
)
def test_added_tokens_that_texts_are_searched_for_are_refused(files, message, tmp_path):
    write_folder(tmp_path)
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_special_added_tokens_are_read(tmp_path):
    write_folder(tmp_path, vocab_size=SIZES["vocab_size"] + 2)
    (tmp_path / "special_tokens_map.json").write_text('{"additional_special_tokens": ["<e>"]}')
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<e>": SIZES["vocab_size"] + 1}))
    tokenizer = read_checkpoint(tmp_path).tokenizers.source
    assert tokenizer.pieces([SIZES["vocab_size"] + 1]) == ["<e>"]


@pytest.mark.slow
def test_options_decide_about_lower_case(tmp_path):
    """As in `transformers`, against `tokenizer.json`, where there is an option."""
    write_folder(tmp_path, lines=False)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tokenizer = read_checkpoint(tmp_path).tokenizers.source
    known, unknown = tokenizer.encode(["dog", "DOG"]).to_list()
    assert known == [3, PIECES.index("dog"), 4] and unknown == [3, 2, 4]


def test_wrong_tensors_and_missing_files_are_reported(tmp_path):
    write_folder(tmp_path, more={"bert.strange": np.zeros(3, "float32")})
    with pytest.raises(ValueError, match=r"must be used.*Unused: bert\.strange\."):
        read_checkpoint(tmp_path)
    write_folder(tmp_path, id2label={**SIZES["id2label"], "3": "MORE"})
    change_json(tmp_path / "config.json", lambda content: content["id2label"].pop("3"))
    with pytest.raises(ValueError, match=r"classifier\.weight must have the shape \[3, 24\]"):
        read_checkpoint(tmp_path)
    write_folder(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / "vocab.txt")) + " is missing"):
        read_checkpoint(tmp_path)


@pytest.mark.slow
def test_the_commands_convert_and_print_the_names_of_labels(tmp_path):
    write_folder(tmp_path / "hf")
    run = str(tmp_path / "run")
    done = CliRunner().invoke(cli, ["convert", "hf", str(tmp_path / "hf"), run])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(cli, ["predict", run], input="".join(f"{text}\n" for text in TEXTS))
    assert done.exit_code == 0, done.output
    expected = from_pretrained(tmp_path / "hf").classify(TEXTS)
    assert done.stdout.splitlines() == [
        found.label if text else "" for text, found in zip(TEXTS, expected, strict=True)
    ]


@pytest.mark.long
@pytest.mark.slow
def test_exports_of_a_token_classifier(tmp_path):
    write_folder(tmp_path / "hf", **TAGGER)
    token_classifier, texts = (
        from_pretrained(tmp_path / "hf"),
        ["A dog is running.", "the film ☃", "cats"],
    )
    assert export_saved_model(token_classifier, tmp_path / "saved", texts)["agreement"] == 1
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        feed = {signature.inputs["sentences"].name: [text.encode() for text in texts]}
        labels = session.run(signature.outputs["labels"].name, feed)
    assert [" ".join(x.decode() for x in row if x) for row in labels] == token_classifier(texts)
    assert export_litert(token_classifier, tmp_path / "m.tflite", texts)["agreement"] == 1


@pytest.mark.long
@pytest.mark.slow
def test_a_new_head_is_trained_on_its_encoder(tmp_path):
    write_folder(tmp_path / "hf", **PLAIN)
    write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    lines = [f"a {word} film{' very' * (n % 3)}\t{word}\n" for n in range(60) for word in WORDS]
    (tmp_path / "train.tsv").write_text("".join(lines))
    (tmp_path / "c.toml").write_text(FINE_TUNING)
    command = ["train", str(tmp_path / "c.toml"), "--output", str(tmp_path / "tuned")]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    assert "input, encoder" in done.output and "New parts: head" in done.output
    tuned = TextClassificationPipeline.from_run(tmp_path / "tuned")
    assert tuned.labels == ("bad", "good")
    assert tuned(["a good film", "a bad film"]) == ["good", "bad"]


def test_a_classifier_needs_its_pooler(tmp_path):
    write_folder(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    kept = {name: values for name, values in tensors.items() if "pooler" not in name}
    safetensors.numpy.save_file(kept, path)
    with pytest.raises(ValueError, match=r"pooler\.dense\.\w+ is missing"):
        read_checkpoint(tmp_path)
