"""CoNLL files: their contents, and mistakes reported with file and line."""

import gzip
import itertools
from types import SimpleNamespace

import pytest
import tensorflow as tf

from keras_transformer.tasks.token_classification.spans import find_problem, words_of
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.tasks.token_classification.conll import read_conll

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
    chunks = read_conll(written(tmp_path, "EU NNP B-NP O\n", "c.conll"), 3, "BIO")
    assert chunks == [[("EU", "B-NP")]]


def test_only_ascii_white_space_separates_columns(tmp_path):
    """As for the words of a text: a no-break space belongs to its word."""
    spaces = [chr(code) for code in range(128, 0x110000) if chr(code).isspace()]
    spaces += ["\x1c", "\x1d", "\x1e", "\x1f"]
    words = [f"10{space}000" for space in spaces]
    content = "".join(f"{word}\tCD \v\fB-MONEY\n\n" for word in words)
    sentences = read_conll(written(tmp_path, content), 3, "BIO")
    assert sentences == [[(word, "B-MONEY")] for word in words]
    assert [words_of(word) for word in words] == [[word] for word in words]
    assert tf.strings.split(words).to_list() == [[word.encode()] for word in words]


@pytest.mark.parametrize(
    ("iob1", "bio"),
    [
        # Ramshaw and Marcus (1995): B-X only between adjacent spans of one type.
        ("O I-X O", "O B-X O"),
        ("I-X I-X O", "B-X I-X O"),
        ("I-X I-Y I-Y", "B-X B-Y I-Y"),
        ("I-X B-X I-X", "B-X B-X I-X"),
        ("I-X I-X B-X B-X", "B-X I-X B-X B-X"),
        ("I-X O I-X I-Y B-Y I-X", "B-X O B-X B-Y B-Y B-X"),
        ("B-X I-X O B-Y", "B-X I-X O B-Y"),  # BIO stays unchanged
        ("O O", "O O"),
    ],
)
def test_iob1_is_read_as_bio(tmp_path, iob1, bio):
    lines = [f"w{number} NN {label}" for number, label in enumerate(iob1.split())]
    path = written(tmp_path, "\n".join([*lines, "", "w NN I-X", ""]))
    first, second = read_conll(path, 3, "IOB1")
    assert first == [(f"w{number}", label) for number, label in enumerate(bio.split())]
    assert second == [("w", "B-X")], "a span ends with its sentence"
    assert find_problem([label for _, label in first]) is None


def test_every_set_of_spans_survives_a_round_trip_through_iob1(tmp_path):
    """Converts to IOB1 by its definition, and back."""
    for prefixes in itertools.product(("O", "B-X", "I-X", "B-Y", "I-Y"), repeat=4):
        if find_problem(prefixes) is not None:
            continue
        old = [
            "I" + label[1:] if label[0] == "B" and label[1:] != before[1:] else label
            for before, label in itertools.pairwise(("O", *prefixes))
        ]
        path = written(tmp_path, "".join(f"w {label}\n" for label in old))
        assert [label for _, label in read_conll(path, 2, "IOB1")[0]] == [*prefixes]


def test_a_label_that_occurs_only_in_iob1_is_known_by_its_bio_form(tmp_path):
    """I-Y starts the spans in both files; after conversion to BIO no file has an I-Y."""
    given = settings(tmp_path, "a I-Y\n\nb O\n", "c O\nd I-Y\n", scheme="IOB1")
    rows = open_source(given).rows("validation").as_numpy_iterator()
    assert next(rows)[1] == b"O B-Y"
    given = settings(tmp_path, "a I-Y\n", "c O\nd I-Y\ne I-Y\n", scheme="IOB1")
    with pytest.raises(ValueError, match="validation.conll, line 3: .*B-Y, O. Received: 'I-Y'"):
        open_source(given)
    given = settings(tmp_path, "a O\nb E-Y\n", "c O\n", scheme="IOB1")
    with pytest.raises(ValueError, match="line 2: the label must be O or one of B-TYPE, I-TYPE in"):
        open_source(given)
    given = settings(tmp_path, "a O\nb I-Y\n", "c O\n", scheme="BIO")
    with pytest.raises(ValueError, match='line 2: I-Y must .* as in CoNLL-2003, set `scheme = "IO'):
        open_source(given)


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
        (
            "a B-X\n",
            "a O\nb B-Y\n",
            "validation.conll, line 2: .* one of those in the tr.* 'B-Y'",
        ),
        ("a NN\n", "a O\n", "train.conll, line 1: the label must be O or one of .*Received: NN"),
        ("-DOCSTART- O\n\n", "a O\n", "train.conll must contain at least one sentence. .* 2 lines"),
        ("a B-X\n", "\n", "validation.conll must contain at least one sentence"),
        (b"a O\n\xff B-X\n", "a O\n", "train.conll, line 2: must be UTF-8"),
    ],
)
def test_a_mistake_is_reported_with_file_and_line(tmp_path, train, validation, message):
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


def test_a_missing_file_and_a_missing_column_are_reported(tmp_path):
    given = settings(tmp_path, FILE, FILE)
    given.train = [str(tmp_path / "none.conll")]
    with pytest.raises(ValueError, match="none.conll: cannot be read: No such file"):
        open_source(given)
    with pytest.raises(ValueError, match="line 3: must have at least 5 columns"):
        open_source(settings(tmp_path, FILE, FILE, column=5))
