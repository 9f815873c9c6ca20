"""Vocabularies of converted models in the modules of the page in `examples/browser`."""

import random

import pytest
import sentencepiece
import tensorflow as tf
from browsers import call, program
from marks import slow
from opus_folders import (
    CODES,
    SOURCE_TEXT,
    TARGET_TEXT,
    UNKNOWN_TEXTS,
    spm,
    with_unknown_pieces,
    write_folder,
)

from keras_transformer.pretrained.read import read_checkpoint

SENTENCES = [
    *SOURCE_TEXT, *TARGET_TEXT, "", "   ", ">>deu<< a dog", ">>deu<<", ">>fra<< a dog", "a >>deu<<",
    ">>nld<<\nseven  cats", ">>de\nu<< a", ">><< a", ">>deu<a", "ж", "жж a ü", "a<unk>", "</s>",
    "sieben", "XYZ", "the\u00a0hill", "w" * 70,
]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [slow({"codes": CODES, "gap": 3, "extra": 2}), slow({"separate": True}), {"gap": 1}],
    ids=["codes", "separate", "no codes"],
)
def test_ids_and_text_are_those_of_the_tokenizers(options, tmp_path):
    program("node")
    write_folder(tmp_path / "hf", **options)
    tokenizers = read_checkpoint(tmp_path / "hf").tokenizers
    source, target = tokenizers
    files = {}
    for name, content in tokenizers.files().items():
        (tmp_path / name).write_bytes(content)
        files[name] = str(tmp_path / name)
    assert len(files) == 4 and source.table.ids != tuple(range(len(source.table.ids)))
    rng = random.Random(1)
    rows = [rng.choices(range(target.vocab_size), k=k % 11) for k in range(300)]
    rows = [[id for id in row if id != target.eos_id] for row in rows]
    answer = call("vocabularies", files=files, sentences=SENTENCES, rows=rows)["result"]
    expected = [row[:-1] for row in source.encode(SENTENCES).to_list()]  # without the end token
    assert dict(zip(SENTENCES, answer["ids"], strict=True)) == dict(
        zip(SENTENCES, expected, strict=True)
    )
    pieces = [
        (piece, name)
        for row, names in zip(expected, answer["pieces"], strict=True)
        for piece, name in zip(source.pieces(row), names, strict=True)
    ]
    assert all(name == piece or piece == "<unk>" for piece, name in pieces)
    texts = target.decode(tf.ragged.constant(rows, dtype=tf.int32)).numpy()
    assert answer["texts"] == [text.decode() for text in texts]
    assert answer["names"] == [target.pieces(row) for row in rows]


def test_characters_known_only_to_the_vocabulary_are_looked_up_as_in_python(tmp_path):
    """In Python they are the ids of SentencePiece and `vocab.json`: see `test_opus_mt.py`."""
    program("node")
    with_unknown_pieces(tmp_path / "hf")
    tokenizers = read_checkpoint(tmp_path / "hf").tokenizers
    files = {}
    for name, content in tokenizers.files().items():
        (tmp_path / name).write_bytes(content)
        files[name] = str(tmp_path / name)
    rng = random.Random(2)
    mixed = ["".join(rng.choices("abdogcet жж€漢字ÿxyzüQ1", k=1 + k % 17)) for k in range(300)]
    sentences = list(dict.fromkeys([*UNKNOWN_TEXTS, *mixed]))
    answer = call("vocabularies", files=files, sentences=sentences, rows=[])["result"]
    expected = [row[:-1] for row in tokenizers.source.encode(sentences).to_list()]
    assert dict(zip(sentences, answer["ids"], strict=True)) == dict(
        zip(sentences, expected, strict=True)
    )


def test_a_shared_vocabulary_with_a_table(tmp_path):
    program("node")
    (tmp_path / "tokenizer.model").write_bytes(spm("source"))
    pieces = sentencepiece.SentencePieceProcessor(model_proto=spm("source"))
    size = pieces.vocab_size()
    table = (
        f'{{"ids": {list(range(size))[::-1]}, "size": {size}, "pad_id": 0, "bos_id": 0, '
        f'"unk_id": {size - 1}, "eos_id": {size - 3}, "names": {{}}}}'
    )
    (tmp_path / "tokenizer.ids.json").write_text(table)
    files = {path.name: str(path) for path in tmp_path.iterdir()}
    answer = call("vocabularies", files=files, sentences=["a dog"], rows=[[5]])["result"]
    assert answer["ids"] == [[size - 1 - number for number in pieces.encode("a dog")]]
    assert answer["names"] == [[pieces.id_to_piece(size - 6)]]


@pytest.mark.parametrize(
    ("name", "value"), [("languages", '{"ids": {"de": 1}}'), ("steps", '["nfkc"]')]
)
def test_a_table_that_the_page_would_not_follow_is_refused(name, value, tmp_path):
    program("node")
    (tmp_path / "tokenizer.model").write_bytes(spm("source"))
    table = f'{{"ids": [0, 1, 2], "pad_id": 0, "unk_id": 1, "names": {{}}, "{name}": {value}}}'
    (tmp_path / "tokenizer.ids.json").write_text(table)
    files = {path.name: str(path) for path in tmp_path.iterdir()}
    answer = call("vocabularies", files=files, sentences=["a dog"], rows=[])
    assert answer["error"] == f"This page cannot use the vocabulary: it has {name}."
