"""Tables of code points beside a vocabulary in a `.tflite` file, for readers in other languages."""

import json
import unicodedata
import zipfile

from reader_cases import members_of, vocabulary
from test_tokenizers import LETTERS, learned

from keras_transformer.export.litert.packed import pack, unpack
from keras_transformer.tasks.classification.pipeline import ClassificationCodec
from keras_transformer.text import letter_ranges, unicode_ranges
from keras_transformer.text.code_points import members, ranges_of
from keras_transformer.text.letter_ranges import NUMBERS
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.unicode_ranges import APART, WHOLE


def test_a_packed_file_has_them_and_is_read_without_them(tmp_path):
    path, tokenizer = tmp_path / "x.tflite", vocabulary("qwen2")
    metadata = {
        "format": 3, "task": "language_modelling", "max_length": 9, "quantize": "none",
        "signatures": [{"name": "x", "batch_size": 1, "source_length": 9}],
    }  # fmt: skip
    pack(path, b"model", Tokenizers.of(tokenizer), metadata)
    with zipfile.ZipFile(path) as archive:
        names = ["tokenizer.bpe.json", "tokenizer.unicode.json", "metadata.json"]
        assert archive.namelist() == names
        tables = json.loads(archive.read("tokenizer.unicode.json"))
    assert tables.keys() == {"words", "ordered", "seconds", "apart"}
    *_, again = unpack(path)
    assert again.source.identity() == tokenizer.identity()


def test_two_vocabularies_have_a_table_each():
    both = Tokenizers.of((vocabulary("gpt2"), vocabulary("found")))
    assert [*both.code_points()] == ["source.unicode.json", "target.unicode.json"]
    assert json.loads(both.code_points()["source.unicode.json"]).keys() == {"words"}


def test_sentencepiece_needs_none():
    assert Tokenizers.of(learned(LETTERS)).code_points() == {}


def test_ranges_are_sorted_and_do_not_overlap():
    tables = json.loads(members_of(vocabulary("qwen2"))["tokenizer.unicode.json"])
    for name in ("ordered", "seconds", "apart"):
        edges = [edge for pair in tables[name] for edge in pair]
        assert edges == sorted(edges), name
    assert members(tables["apart"]) == members(APART) | members(WHOLE)
    assert ranges_of(members(NUMBERS)) == [*NUMBERS] and ranges_of([]) == []
    # The second letters of all pairs, as Python's normal form shows them.
    apart = members(tables["apart"])
    pairs = (unicodedata.normalize("NFD", chr(p)) for p in {*range(0x110000)} - apart)
    seconds = members(tables["seconds"])
    for pair in pairs:
        composed = unicodedata.normalize("NFC", pair)
        if len(pair) == 2 and len(composed) == 1:
            assert ord(pair[1]) in seconds, ascii(pair)


def test_the_rule_of_a_row_names_its_beginning_once():
    codec = ClassificationCodec(vocabulary("wordpiece"), 9, ["a", "b"])
    assert codec.metadata()["source"].startswith("Each row: bos; then the ids of a text's tokens,")
    codec = ClassificationCodec(vocabulary("found"), 9, ["a", "b"])
    assert codec.metadata()["source"].startswith("Each row: the ids of a text's tokens,")


def test_classes_of_patterns_are_those_of_unicode_16():
    # Totals of DerivedGeneralCategory-16.0.0.txt.
    letters, numbers = 1858 + 31 + 2258 + 404 + 136477, 760 + 236 + 915
    counts = {"LETTERS": letters, "NUMBERS": numbers, "COMBINING": 2020 + 468 + 13}
    counts |= {"UPPERCASE_LETTERS": 1858 + 31, "LOWERCASE_LETTERS": 2258}
    for name, count in counts.items():
        assert len(members(getattr(letter_ranges, name))) == count, name


def test_bert_removes_marks_and_splits_punctuation_of_unicode_8():
    marks, others = members(unicode_ranges.MARKS), members(unicode_ranges.OTHER_MARKS)
    punctuation = members(unicode_ranges.PUNCTUATION)
    assert not marks & others and not (marks | others) & punctuation
    assert {0x301, 0x1734} <= marks and {0x903, 0x20DD, 0x8E1} <= others
    assert {*map(ord, "$+<=>^`|~!-_")} <= punctuation
    newer = {0x8D3, 0x1ABF, 0x11F5A, 0x2E5D, 0x1B7D}  # of Unicode 11 to 16
    assert not newer & (marks | others | punctuation)
