"""WordPiece and byte-level BPE of `examples/android`, compared with the package."""

import json
import struct

import kotlin_program
import pytest
import tensorflow as tf
from hostile_texts import assert_equal
from reader_cases import VOCABULARIES, answers, rows, texts, vocabulary

from keras_transformer.export.litert.packed import pack
from keras_transformer.tasks.strings import encode
from keras_transformer.text.tokenizers import Tokenizers


def units(text):
    """Returns the UTF-16 units of a text in hexadecimal."""
    content = text.encode("utf-16-le", "surrogatepass")
    return " ".join(f"{unit:x}" for unit in struct.unpack(f"<{len(content) // 2}H", content))


@pytest.mark.slow
@pytest.mark.skipif(kotlin_program.without_kotlin(), reason="needs kotlinc and java")
@pytest.mark.parametrize("name", VOCABULARIES)
def test_ids_offsets_and_texts_are_those_of_the_tokenizer(name, tmp_path):
    tokenizer, path = vocabulary(name), tmp_path / "x.tflite"
    pack(path, b"the bytes of a model", Tokenizers.of(tokenizer), {"format": 3})
    halves = ["\ud800", "a\udc00 b", "\ud83d\ud83d\ude00"]
    made, given = rows(tokenizer), texts()
    lines = [f"t{units(text)}" for text in [*given, *halves]]
    lines += [f"r{' '.join(map(str, row))}" for row in made]
    marks = tokenizer.bos_id, tokenizer.eos_id
    found = kotlin_program.run("tokens.TokensKt", path, *marks, lines=lines)
    expected = answers(tokenizer, given, made)
    tokens = [json.loads(line) for line in found[: -len(made)]]
    ours = tokens[: len(given)]
    assert_equal(given, [row[0] for row in ours], expected.ids)
    assert_equal(given, [row[1] for row in ours], expected.places)
    ids, _, empty = encode(tokenizer, tf.constant(given), 7)
    sources = [[] if none else row for row, none in zip(ids.to_list(), empty.numpy(), strict=True)]
    assert_equal(given, [row[2] for row in ours], sources)
    whole = ["\ufffd", "a\ufffd b", "\ufffd\U0001f600"]
    assert [row[0] for row in tokens[len(given) :]] == tokenizer.tokenize(whole).to_list()
    decoded = [bytes.fromhex(line).decode() for line in found[-len(made) :]]
    assert_equal(made, decoded, expected.texts)
