"""ALBERT, MPNet, DeBERTa and ModernBERT against their arithmetic in NumPy, and what is refused."""

import json

import numpy as np
import pytest
import tensorflow as tf
from bert_folders import TAGGER
from encoder_folders import CLASSES, added, random_rows, tokenizer_json, write_folder
from encoders_in_numpy import forward
from hostile_texts import assert_equal, hostile, rows
from marks import slow_except

from keras_transformer import from_pretrained
from keras_transformer.export import LiteRTOptions, export_litert, export_saved_model
from keras_transformer.pretrained.read import read_checkpoint

LABELS = {"id2label": TAGGER["id2label"]}
KINDS = {  # every fourth one is fast
    "albert": ("albert", "SequenceClassification", {}),
    "albert, pairs of blocks": ("albert", "Model", {"inner_group_num": 2, "num_hidden_groups": 1}),
    "albert, words": ("albert", "TokenClassification", LABELS),
    "mpnet": ("mpnet", "SequenceClassification", {}),
    "mpnet, words": ("mpnet", "TokenClassification", LABELS),
    "deberta, words": ("deberta-v2", "TokenClassification", LABELS),
    "deberta, also learned positions": (
        "deberta-v2", "Model",
        {"position_biased_input": True, "norm_rel_ebd": "none", "max_relative_positions": 9},
    ),
    "deberta": ("deberta-v2", "SequenceClassification", {}),
    "modernbert, words": ("modernbert", "TokenClassification", LABELS),
    "modernbert, first token": ("modernbert", "SequenceClassification",
                                {"classifier_pooling": "cls"}),
    "modernbert, global": ("modernbert", "Model", {"global_attn_every_n_layers": 1}),
    "modernbert": ("modernbert", "SequenceClassification", {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", slow_except(KINDS, "mpnet", "deberta", "modernbert"))
def test_states_and_logits(kind, tmp_path):
    family, head, changes = KINDS[kind]
    settings, tensors = write_folder(tmp_path, family, head, **changes)
    checkpoint, (ids, types) = read_checkpoint(tmp_path), random_rows(settings)
    model, real = checkpoint.model, ids != settings["pad_token_id"]
    expected, logits = forward(tensors, settings, ids, types)
    tokens = model.parts.input
    states = model.encoder(tokens(ids, training=False), tokens.padding_mask(ids), training=False)
    np.testing.assert_allclose(states.numpy()[real], expected[real], rtol=0, atol=1e-5)
    assert ("has no head" in "".join(checkpoint.notes)) == (logits is None)
    if logits is not None:
        ours, every = model(ids, training=False).numpy(), ... if logits.ndim == 2 else real
        np.testing.assert_allclose(ours[every], logits[every], rtol=0, atol=1e-5)
        assert model.config.head.labels == tuple(settings["id2label"].values())


TEXTS = ["the film is good", "a bad, bad dog", "", "``caf\u00e9'' \u212b  ﬁlm"]
FOUND = ["  ", "   ", "     ", "|||IP|||", "<tool>"]
SPACES = {"type": "Replace", "pattern": {"Regex": r"\s{2,}|[\n\r\t]"}, "content": " "}
END = {"type": "Strip", "strip_left": False, "strip_right": True}
NEWER = {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, SPACES, {"type": "NFC"}, END]}


def write_tokenizer(folder, family, change):
    """Writes a checkpoint whose `tokenizer.json` is changed, and returns its content."""
    content = tokenizer_json(family)
    change(content)
    size = len(content["model"]["vocab"]) + len(FOUND) + 2
    write_folder(folder, family, vocab_size=size)
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    return content


def add_found(content):
    """Adds tokens that are found in texts."""
    first = len(content["model"]["vocab"])
    content["added_tokens"] += [
        added(first + n, name, special=False, normalized=True) for n, name in enumerate(FOUND)
    ]


def newer(content):
    content["normalizer"] = NEWER


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "change"),
    [("albert", lambda c: None), ("mpnet", lambda c: None), ("deberta-v2", newer),
     ("modernbert", lambda c: None), ("modernbert", add_found)],
    ids=["albert", "mpnet", "deberta, newer", "modernbert", "modernbert, found"],
)  # fmt: skip
def test_ids_equal_those_of_the_package_tokenizers(family, change, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    content = write_tokenizer(tmp_path, family, change)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(content))
    rng = np.random.default_rng(0)
    parts = ["a", "the ", " good", "\u0301", "\u0323", "É", "ﬁ", "½", "\t", "\n", "\u00a0", "\x85",
             "Ⅷ", "韓", "각", "``", "\'\'", "\'", "\x00", " ", *FOUND]  # fmt: skip
    mixed = ["".join(rng.choice(parts, rng.integers(1, 16))) for _ in range(5000)]
    texts = [*TEXTS, *hostile(5000, 4), *mixed]
    expected = [encoding.ids for encoding in theirs.encode_batch(texts)]
    assert_equal(texts, rows(read_checkpoint(tmp_path).tokenizers.source, texts), expected)


@pytest.mark.slow
def test_tokens_are_found_and_words_are_quotes(tmp_path):
    content = write_tokenizer(tmp_path, "modernbert", add_found)
    tokenizer = read_checkpoint(tmp_path).tokenizers.source
    first = len(content["model"]["vocab"])
    text = "the  cafe\u0301, <tool>a   dog\x00  "
    ids, begins, ends = (x.to_list()[0] for x in tokenizer.tokenize_with_words([text]))
    assert [first + n for n in (0, 4, 1, 0)] == [number for number in ids if number >= first]
    words = [text.encode()[a:b].decode() for a, b in zip(begins, ends, strict=True)]
    assert {*words} == {"the", "cafe\u0301", ",", "<tool>", "a", "dog", "\x00", ""}
    assert tokenizer.decode(tf.ragged.constant([[*ids, 3]])).numpy()[0].decode() == (
        "the  caf\u00e9, <tool>a   dog\x00  "
    )


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("albert", {"embedding_size": 11}, r"weight must have the shape \[\d+, 11"),
        ("albert", {"num_hidden_groups": 1}, "every tensor must be used.*groups.1"),
        ("albert", {"num_hidden_groups": 0}, "`num_hidden_groups` must be a whole number"),
        ("albert", {"pad_token_id": 4}, "`pad_token_id` must be 0, the id of <pad>"),
        ("albert", {"architectures": ["AlbertForMultipleChoice"]}, "`architectures` must be one"),
        ("mpnet", {"relative_attention_num_buckets": 64}, "`relative_attention_num_buckets`"),
        ("mpnet", {"pad_token_id": 0}, "`pad_token_id` must be 1"),
        ("deberta-v2", {"conv_kernel_size": 3}, "`conv_kernel_size` must be 0"),
        ("deberta-v2", {"share_att_key": False}, "`share_att_key` must be true"),
        ("deberta-v2", {"pos_att_type": "c2p"}, "`pos_att_type` must be p2c and c2p"),
        ("deberta-v2", {"pos_att_type": None}, "`pos_att_type` must be p2c and c2p"),
        ("deberta-v2", {"relative_attention": False}, "`relative_attention` must be true"),
        ("deberta-v2", {"position_buckets": 3}, "`position_buckets` must be an even number"),
        ("deberta-v2", {"position_buckets": -1}, "`position_buckets` must be a whole number"),
        ("deberta-v2", {"max_relative_positions": "x"}, "`max_relative_positions` must be a whole"),
        ("deberta-v2", {"embedding_size": 9}, "`embedding_size` must be 24, `hidden_size`"),
        ("deberta-v2", {"type_vocab_size": 2}, "`type_vocab_size` must be 0"),
        ("deberta-v2", {"norm_rel_ebd": "batch_norm"}, "`norm_rel_ebd` must be 'none' or 'layer_n"),
        ("modernbert", {"classifier_pooling": "max"}, "`classifier_pooling` must be one of cls, m"),
        ("modernbert", {"local_attention": 1}, "`local_attention` must be a whole number of at le"),
        ("modernbert", {"layer_types": ["full_attention"] * 2}, "`layer_types` must be sliding_at"),
        ("modernbert", {"num_hidden_layers": 10**9, "layer_types": []}, "`layer_types` must be sl"),
        ("modernbert", {"rope_scaling": {"factor": 2}}, "`rope_scaling` must be null"),
        ("modernbert", {"rope_parameters": {}}, "`rope_parameters` must be a table"),
        (
            "modernbert", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}},
            "`rope_type` must be 'default'",
        ),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_expressed_are_named(family, changes, message, tmp_path):
    settings, _ = write_folder(tmp_path, family)
    (tmp_path / "config.json").write_text(json.dumps({**settings, **changes}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


@pytest.mark.parametrize(
    ("family", "change", "message"),
    [
        ("albert", lambda c: c["normalizer"]["normalizers"].insert(0, {"type": "Nmt"}), "known st"),
        ("albert", lambda c: c["normalizer"]["normalizers"].append({"type": "NFC"}), "known steps"),
        ("deberta-v2", lambda c: c["pre_tokenizer"]["pretokenizers"].insert(
            0, {"type": "Punctuation", "behavior": "Isolated"}), "`pre_tokenizer` must be one"),
        ("modernbert", lambda c: c.update(normalizer={"type": "NFKC"}), "of the type NFC, or null"),
        ("modernbert", lambda c: c["added_tokens"].append(added(3, "[SEP]", special=False)),
         "`found` must be pieces that are not special. Received: '.SEP.'"),
        ("modernbert", lambda c: c["added_tokens"].append(
            added(300, "x", special=False, lstrip=True)), "must be without .*'x' with lstrip"),
        ("modernbert", lambda c: c["added_tokens"].append(
            added(300, "cafe", special=False, normalized=True)), "`normalized`, .*'cafe'"),
    ],
)  # fmt: skip
def test_vocabularies_that_cannot_be_expressed_are_named(family, change, message, tmp_path):
    write_tokenizer(tmp_path, family, change)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("family", CLASSES)
def test_exports_answer_as_the_checkpoint(family, tmp_path):
    write_folder(tmp_path / "hf", family)
    classifier = from_pretrained(tmp_path / "hf")
    assert export_saved_model(classifier, tmp_path / "saved", TEXTS)["agreement"] == 1
    for quantize in ("none", "int8"):
        path = tmp_path / f"{quantize}.tflite"
        report = export_litert(
            classifier, path, TEXTS, LiteRTOptions(quantize=quantize, min_agreement=0.75)
        )
        assert report["agreement"] >= (0.75 if quantize == "int8" else 1)
