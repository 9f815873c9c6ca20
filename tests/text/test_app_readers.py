"""WordPiece and byte-level BPE of `examples/android` and `examples/ios`, beside the package's."""

import pytest
import tensorflow as tf
from app_programs import each_language, tokenized
from hostile_texts import assert_equal
from reader_cases import VOCABULARIES, answers, rows, texts, vocabulary

from keras_transformer.export.litert.packed import pack
from keras_transformer.tasks.strings import encode
from keras_transformer.text.tokenizers import Tokenizers


@pytest.mark.slow
@each_language
@pytest.mark.parametrize("name", VOCABULARIES)
def test_ids_offsets_and_texts_are_those_of_the_tokenizer(name, language, tmp_path):
    tokenizer, path = vocabulary(name), tmp_path / "x.tflite"
    pack(path, b"the bytes of a model", Tokenizers.of(tokenizer), {"format": 3})
    halves = ["\ud800", "a\udc00 b", "\ud83d\ud83d\ude00"]
    made, given = rows(tokenizer), texts()
    marks = tokenizer.bos_id, tokenizer.eos_id
    tokens, decoded = tokenized(language, path, [*given, *halves], made, marks)
    expected = answers(tokenizer, given, made)
    ours = tokens[: len(given)]
    assert_equal(given, [row[0] for row in ours], expected.ids)
    assert_equal(given, [row[3] for row in ours], expected.places)
    ids, cut, empty = encode(tokenizer, tf.constant(given), 7)
    sources = [[] if none else row for row, none in zip(ids.to_list(), empty.numpy(), strict=True)]
    assert_equal(given, [row[1] for row in ours], sources)
    assert_equal(given, [row[2] for row in ours], cut.numpy().tolist())
    whole = ["\ufffd", "a\ufffd b", "\ufffd\U0001f600"]
    assert [row[0] for row in tokens[len(given) :]] == tokenizer.tokenize(whole).to_list()
    assert_equal(made, decoded, expected.texts)
