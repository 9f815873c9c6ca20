"""Heads for masked tokens: their arithmetic in NumPy, the words of a pipeline, what is refused."""

import json
import re

import bert_folders
import bert_in_python
import numpy as np
import pytest
import roberta_folders
from bert_folders import PIECES
from click.testing import CliRunner
from marks import slow, slow_except
from masked_heads import KINDS, NAMES, forward, masked_texts, random_rows, write_folder

from keras_transformer import from_pretrained
from keras_transformer.cli.main import cli
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pipelines import Filling, MaskFiller
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.tasks.run import Run
from keras_transformer.training.converted import write_converted

TEXTS = ["A [MASK] is [MASK]good", "the film [MASK]", "[MASK], bad[MASK]"]
ROWS = [
    *((kind, tied, {}) for kind in KINDS for tied in (True, False) if tied or NAMES[kind].decoder),
    ("bert", True, {"hidden_act": "relu"}),
    ("distilbert", True, {"activation": "relu"}),
    ("electra", True, {"embedding_size": 24}),
    ("electra", True, {"hidden_act": "relu"}),
    ("roberta", True, {"hidden_act": "relu"}),
    ("albert", True, {"hidden_act": "relu", "inner_group_num": 2}),
    ("albert", True, {"embedding_size": 24}),
    ("mpnet", True, {"hidden_act": "relu"}),
    ("modernbert", True, {"classifier_activation": "relu", "classifier_bias": True,
                          "norm_bias": True}),
    ("modernbert", True, {"decoder_bias": False, "sparse_prediction": True}),
    ("modernbert", False, {"decoder_bias": False}),
    ("deberta", True, {"hidden_act": "relu"}),
    ("deberta, newer", True, {"hidden_act": "relu", "tie_word_embeddings": False}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "tied", "changes"),
    [
        slow("bert", False, {}),
        slow("distilbert", False, {}),
        slow("electra", True, {}),
        slow("roberta", False, {}),
        slow("xlm-roberta", True, {}),
        ("camembert", False, {}),
        ("distilbert", True, {"activation": "relu"}),
        ("deberta, newer", True, {"hidden_act": "relu", "tie_word_embeddings": False}),
    ],
)
def test_logits(kind, tied, changes, tmp_path):
    settings, tensors = write_folder(tmp_path, kind, tied, **changes)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.task == "masked_language_modelling" and not checkpoint.notes
    assert checkpoint.model.config.head.is_tied == tied
    ids, types = random_rows(kind, settings)
    real = ids != settings["pad_token_id"]
    expected = forward(kind, tensors, settings, ids, types)
    ours = checkpoint.model(ids, training=False).numpy()
    np.testing.assert_allclose(ours[real], expected[real], rtol=0, atol=1e-5)


def test_a_copy_of_the_table_may_be_in_the_file(tmp_path):
    """As in files of older versions, which also name the bias twice."""
    names = NAMES["bert"]
    settings, tensors = write_folder(tmp_path, "bert")
    table = tensors["bert.embeddings.word_embeddings.weight"].astype("float32")
    copies = {
        f"{names.decoder}.weight": table,
        f"{names.decoder}.bias": tensors[names.bias].astype("float32"),
        "cls.seq_relationship.weight": np.zeros([2, 24], "float32"),
        "bert.pooler.dense.bias": np.zeros(24, "float32"),
    }
    plain = read_checkpoint(tmp_path).model.get_weights()
    write_folder(tmp_path, "bert", more=copies)
    for one, two in zip(read_checkpoint(tmp_path).model.get_weights(), plain, strict=True):
        np.testing.assert_array_equal(one, two)
    write_folder(tmp_path, "bert", more={**copies, f"{names.decoder}.weight": table + 1})
    checkpoint = read_checkpoint(tmp_path)
    (note,) = checkpoint.notes
    assert note.startswith(f"`tie_word_embeddings` is true, but {names.decoder}.weight differs")
    kernel = checkpoint.model.output_layer.kernel.numpy().T
    np.testing.assert_array_equal(kernel, table + 1)


@pytest.mark.parametrize("kind", slow_except(KINDS, "deberta, newer"))
def test_every_tensor_of_the_head_is_needed_and_no_other_is_there(kind, tmp_path):
    write_folder(tmp_path, kind, more={f"{NAMES[kind].dense}.strange": np.zeros(3, "float32")})
    with pytest.raises(ValueError, match=r"every tensor must be used.*strange"):
        read_checkpoint(tmp_path)
    write_folder(tmp_path, kind, more={NAMES[kind].bias: None})
    with pytest.raises(ValueError, match=r"the tensor \S*bias is missing"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(("kind", "value"), [("deberta", False), ("deberta, newer", True)])
def test_the_setting_must_name_the_head_in_the_file(kind, value, tmp_path):
    settings, _ = write_folder(tmp_path, kind)
    (tmp_path / "config.json").write_text(json.dumps({**settings, "legacy": value}))
    message = (
        f"`legacy` must be {str(not value).lower()}, as the file has the tensor {NAMES[kind].dense}"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        read_checkpoint(tmp_path)


def expected_words(tensors, settings, text, count=5):
    """Returns the words and probabilities of each mask of a text, for BERT."""
    ids, row = {piece: number for number, piece in enumerate(PIECES)}, [3]
    for number, part in enumerate(text.split("[MASK]")):
        row += [5] * (number > 0) + bert_in_python.ids(part, ids, lowercase=True)[1:-1]
    row = np.array([[*row, 4]])
    logits = forward("bert", tensors, settings, row, np.zeros_like(row))[0]
    logits = logits[row[0] == 5]
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    best = np.argsort(-shares, axis=1)[:, :count]
    words = tuple(tuple(PIECES[token] for token in tokens) for tokens in best)
    return words, np.take_along_axis(shares, best, 1)


@pytest.mark.slow
def test_words_of_a_pipeline_and_of_a_run(tmp_path):
    settings, tensors = write_folder(tmp_path / "hf", "bert")
    filler = from_pretrained(tmp_path / "hf")
    assert isinstance(filler, MaskFiller)
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert Run(run.path).task() == "masked_language_modelling"
    for text, ours, again in zip(
        TEXTS, filler.answer(TEXTS), open_run(run.path).answer(TEXTS), strict=True
    ):
        words, shares = expected_words(tensors, settings, text)
        assert ours == again == Filling(words, shares, False)
        np.testing.assert_allclose(ours.probabilities, shares, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(ours.probabilities, again.probabilities)


@pytest.mark.slow
def test_the_commands_convert_and_print_words(tmp_path):
    settings, tensors = write_folder(tmp_path / "hf", "bert")
    run = str(tmp_path / "run")
    done = CliRunner().invoke(cli, ["convert", "hf", str(tmp_path / "hf"), run])
    assert done.exit_code == 0, done.output
    lines = [TEXTS[0], "no mask", "", TEXTS[1]]
    done = CliRunner().invoke(cli, ["predict", run], input="".join(f"{x}\n" for x in lines))
    assert done.exit_code == 0, done.output
    first, second, third, last = done.stdout.splitlines()
    assert (second, third) == ("", "")
    for line, text in ((first, TEXTS[0]), (last, TEXTS[1])):
        words, shares = expected_words(tensors, settings, text)
        fields = line.split("\t")
        assert fields[::2] == [word for row in words for word in row]
        np.testing.assert_allclose(np.array(fields[1::2], float), shares.ravel(), atol=6e-5)
    warning = "Warning: line 2: must have a mask, [MASK]. Received: none; left empty"
    assert [x for x in done.stderr.splitlines() if "line" in x] == [warning]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["albert", "mpnet", "modernbert", "deberta, newer", "deberta"])
def test_exports_predict_the_words_of_the_checkpoint(kind, tmp_path):
    write_folder(tmp_path / "hf", kind)
    filler = from_pretrained(tmp_path / "hf")
    texts = masked_texts(filler.source_tokenizer.mask)
    assert export_saved_model(filler, tmp_path / "saved", texts)["agreement"] == 1
    assert export_litert(filler, tmp_path / "m.tflite", texts)["agreement"] == 1


def test_a_vocabulary_without_a_mask_is_refused(tmp_path):
    write_folder(tmp_path, "bert")
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text().replace("[MASK]", "[OTHER]"))
    with pytest.raises(ValueError, match="must have a mask token that is .*: none") as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)
    bert_folders.write_folder(tmp_path / "plain", **bert_folders.PLAIN)
    vocabulary.rename(tmp_path / "plain/vocab.txt")
    assert read_checkpoint(tmp_path / "plain").tokenizers.source.mask_id is None


def mask_entry(**flags):
    return {"content": "<mask>", "lstrip": False, "rstrip": False, "single_word": False,
            "normalized": False, "special": True, **flags}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "strips"),
    [slow("mask_token", True), slow("added_tokens_decoder", True), ("added_tokens_decoder", False)],
)
def test_files_decide_about_white_space_before_a_mask(place, strips, tmp_path):
    """As in `transformers` 5, by their flag `lstrip`; without it, the space is a token."""
    settings, _ = write_folder(tmp_path, "roberta")
    entry = mask_entry(lstrip=strips)
    number = settings["vocab_size"] - 1
    value = entry if place == "mask_token" else {str(number): entry}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({place: value}))
    tokenizer = read_checkpoint(tmp_path).tokenizers.source
    (row,) = tokenizer.encode_masked(["A <mask> dog<mask>"]).to_list()
    space = [] if strips else ["\u0120"]
    pieces = tokenizer.pieces(row)
    assert pieces == ["<s>", "A", *space, "<mask>", "\u0120dog", "<mask>", "</s>"]


def test_a_mask_with_other_rules_is_not_one(tmp_path):
    settings, _ = write_folder(tmp_path, "roberta")
    entry = {str(settings["vocab_size"] - 1): mask_entry(rstrip=True)}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": entry}))
    message = "must have a mask token that is found in texts .* Received: '<mask>' with `rstrip`"
    with pytest.raises(ValueError, match=message):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("normalizer", [None, {"type": "NFC"}])
def test_a_mask_may_be_normalized_where_nothing_is(normalizer, tmp_path):
    """The published tokenizer.json of RoBERTa says so, and has no normalisation."""
    settings, _ = write_folder(tmp_path, "roberta")
    mask = {**mask_entry(lstrip=True, normalized=True), "id": settings["vocab_size"] - 1}
    content = {**roberta_folders.tokenizer_json(), "normalizer": normalizer, "added_tokens": [mask]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    if normalizer is None:
        assert read_checkpoint(tmp_path).tokenizers.source.mask == "<mask>"
    else:
        message = "Received: '<mask>' with `normalized`, and a normalizer changes texts"
        with pytest.raises(ValueError, match=f"must have a mask token that .*{message}"):
            read_checkpoint(tmp_path)


def test_a_text_after_a_mask_must_get_the_space_that_begins_a_text(tmp_path):
    """It gets none in the checkpoint, but would get one here."""
    write_folder(tmp_path, "xlm-roberta")
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    space = content["pre_tokenizer"]["pretokenizers"][1]
    content["pre_tokenizer"] = {**space, "prepend_scheme": "first"}
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="must have a mask token that is found in texts"):
        read_checkpoint(tmp_path)
