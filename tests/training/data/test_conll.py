"""CoNLL files: what is read of them, and mistakes that name their file and line."""

import gzip
from types import SimpleNamespace

import pytest

from keras_transformer.training.data.sources import open_source
from keras_transformer.training.data.sources.conll import read_conll

FILE = """-DOCSTART- -X- O O

EU NNP I-NP B-ORG
rejects VBZ I-VP O
German\tJJ  I-NP  B-MISC
call NN I-NP I-MISC


Peter NNP I-NP B-PER
-DOCSTART- -X- O O
Zürich NNP I-NP B-LOC
"""


def written(folder, text, name="x.conll"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_sentences_are_words_with_the_labels_of_a_column(tmp_path):
    expected = [
        [("EU", "B-ORG"), ("rejects", "O"), ("German", "B-MISC"), ("call", "I-MISC")],
        [("Peter", "B-PER")],
        [("Zürich", "B-LOC")],
    ]
    for path in (
        written(tmp_path, FILE),
        written(tmp_path, FILE.replace("\n", "\r\n"), "windows.conll"),
        written(tmp_path, gzip.compress(FILE.encode()), "x.conll.gz"),
        written(tmp_path, b"\xef\xbb\xbf" + FILE.encode(), "marked.conll"),
        written(tmp_path, FILE.rstrip("\n"), "no_end.conll"),
    ):
        for column in (4, -1):
            assert read_conll(path, column, "BIO") == expected
    iob1 = read_conll(written(tmp_path, "EU NNP B-NP O\n", "c.conll"), 3, "BIO")
    assert iob1 == [[("EU", "B-NP")]]


def settings(folder, train, validation, **changes):
    values = {
        "source": "conll", "column": -1, "scheme": "BIO", "test": None,
        "train": [written(folder, train, "train.conll")],
        "validation": written(folder, validation, "validation.conll"),
    }  # fmt: skip
    return SimpleNamespace(**{**values, **changes})


def test_a_source_has_words_and_labels(tmp_path):
    data = open_source(settings(tmp_path, FILE, "German B-MISC\n"), ("words", "labels"))
    assert data.splits == ("train", "validation") and data.count("train") == 3
    rows = [tuple(text.decode() for text in row) for row in data.rows("train").as_numpy_iterator()]
    assert rows[0] == ("EU rejects German call", "B-ORG O B-MISC I-MISC")
    assert rows[2] == ("Zürich", "B-LOC")


@pytest.mark.parametrize(
    ("train", "validation", "message"),
    [
        ("a B-X\nb O\nc I-X\n", "a O\n", "train.conll, line 3: I-X must follow B-X or I-X. .* O"),
        ("\n\na B-X\nb I-Y\n", "a O\n", "train.conll, line 4: I-Y must follow B-Y or I-Y.*B-X"),
        ("a B-X\n\nb I-X\n", "a O\n", "train.conll, line 3: .* the beginning of the sentence"),
        ("a B-X\nb\n", "a O\n", "train.conll, line 2: must have at least 2 columns.* 1 .'b'"),
        ("a B-X\n", "a O\nb B-Y\n", "validation.conll, line 2: .* one of the training .* 'B-Y'"),
        ("a NN\n", "a O\n", "train.conll, line 1: the label must be O or one of .*Received: NN"),
        ("-DOCSTART- O\n\n", "a O\n", "train.conll must hold at least one sentence. .* 2 lines"),
        ("a B-X\n", "\n", "validation.conll must hold at least one sentence"),
        (b"a O\n\xff B-X\n", "a O\n", "train.conll, line 2: must be UTF-8"),
    ],
)
def test_a_mistake_names_its_file_and_line(tmp_path, train, validation, message):
    with pytest.raises(ValueError, match=message) as error:
        open_source(settings(tmp_path, train, validation))
    assert "\n" not in str(error.value)


def test_spans_without_an_end_are_mistakes_in_bioes(tmp_path):
    given = settings(tmp_path, "a O\nb E-X\n", "a O\n", scheme="BIOES")
    with pytest.raises(ValueError, match="train.conll, line 2: E-X must follow B-X or I-X"):
        open_source(given)
    given = settings(tmp_path, "a B-X\nb O\n", "a O\n", scheme="BIOES")
    with pytest.raises(ValueError, match="train.conll, line 2: the span of B-X must end in E-X"):
        open_source(given)


def test_a_missing_file_and_a_missing_column_are_named(tmp_path):
    given = settings(tmp_path, FILE, FILE)
    given.train = [str(tmp_path / "none.conll")]
    with pytest.raises(ValueError, match="none.conll: cannot be read: No such file"):
        open_source(given)
    with pytest.raises(ValueError, match="line 3: must have at least 5 columns"):
        open_source(settings(tmp_path, FILE, FILE, column=5))
