"""Word vectors are read line by line, and errors are reported with their line."""

import gzip
import subprocess
import sys

import numpy as np
import pytest

from keras_transformer.text.vectors import check_vectors, read_vectors, words_of

GLOVE = "the 0.5 -1 2e-1\ndog 1 2 3\n. . 4 5 6\nNaïve 7 8 9\n"
WORDS = {"dog": [5], "the": [4, 9], "cat": [6], "Naïve": [7]}


@pytest.fixture
def file(tmp_path):
    def write(content, name="vectors.txt"):
        path = tmp_path / name
        content = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


def plain(vectors):
    assert all(vector.dtype == np.float32 for vector in vectors.values())
    return {word: vector.tolist() for word, vector in vectors.items()}


EXPECTED = {
    "the": [0.5, -1.0, float(np.float32(0.2))],
    "dog": [1.0, 2.0, 3.0],
    "Naïve": [7.0, 8.0, 9.0],
}


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
@pytest.mark.parametrize(
    "content",
    [GLOVE, "4 3\n" + GLOVE, GLOVE.replace("\n", " \n"), GLOVE.replace("\n", "\r\n"), GLOVE[:-1]],
    ids=["GloVe", "word2vec", "spaces at the ends", "Windows", "no last line feed"],
)
def test_both_formats_are_read(file, content, name):
    """A word with a space, as in some files of GloVe, is not a wrong number of values."""
    path = file(content, name)
    assert plain(read_vectors(path, WORDS, 3)) == EXPECTED
    check_vectors(path, 3)


def test_tokens_are_looked_up_without_the_symbol_for_a_space():
    pieces = ["<pad>", "<unk>", "<s>", "</s>", "▁dog", "dog", "▁", "ing", "▁Dog", "▁▁a"]
    assert words_of(pieces, {0, 1, 2, 3}) == {"dog": [4, 5], "ing": [7], "Dog": [8], "▁a": [9]}


WRONG = [
    ("dog 1 2 3\ncat 1 2\n", 2, "must have 3 values, as many as `d_model`. Received: 2"),
    ("dog 1 2 3\ncat 1 2 3 4\n", 2, "must have 3 values, as many as `d_model`. Received: 4"),
    ("3 4\ndog 1 2 3 4\n", 1, "must have 3 values, as many as `d_model`. Received: 4"),
    ("dog 1 2 3 4\n", 1, "must have 3 values"),
    ("dog 1 2 3\ndog 4 5 6\n", 2, "'dog' occurs a second time"),
    ("dog 1 x 3\n", 1, "values must be numbers, 3 of them after the word. Received: 'x'"),
    ("dog 1 2_0 3\n", 1, "values must be numbers, 3 of them after the word. Received: '2_0'"),
    ("dog 1 \v2 3\n", 1, "values must be numbers, 3 of them after the word. Received: '.*2'"),
    ("dog 1 2 3\t\n", 1, "values must be numbers, 3 of them after the word. Received: '3.*'"),
    ("dog 1 \u0663 3\n", 1, "values must be numbers, 3 of them after the word. Received: '\u0663'"),
    ("dog 1 nan 3\n", 1, "values must be finite"),
    ("zebra 1 inf 3\n", 1, "values must be finite"),
    ("dog 1 2 3\n\ncat 1 2 3\n", 2, "must have 3 values, as many as `d_model`. Received: 0"),
    (b"dog 1 2 3\n\xff\xfe 1 2 3\n", 2, "must be UTF-8"),
    (" 1 2 3\n", 1, "must begin with a word"),
    ("dog\t1\t2\t3\n", 1, "must have 3 values, as many as `d_model`. Received: 0"),
    ("9 3\ndog 1 2 3\n", 1, "states 9 words. Received: 1 lines of words"),
    ("dog " + "1" * 9999, 1, "must have at most 4,288 bytes"),
]


@pytest.mark.parametrize(("content", "line", "match"), WRONG)
def test_a_wrong_line_is_reported(file, content, line, match):
    path = file(content)
    with pytest.raises(ValueError, match=match) as error:
        read_vectors(path, WORDS, 3)
    assert str(error.value).startswith(f"{path}, line {line}: ")
    assert "\n" not in str(error.value)


def test_wrong_files_are_reported(file, tmp_path):
    with pytest.raises(ValueError, match="must have at least one word"):
        read_vectors(file(""), WORDS, 3)
    for read in (check_vectors, lambda path, width: read_vectors(path, WORDS, width)):
        with pytest.raises(ValueError, match="nowhere: cannot be read: No such file"):
            read(tmp_path / "nowhere", 3)
        with pytest.raises(ValueError, match="v.gz, line 1: not gzip, or damaged"):
            path = tmp_path / "v.gz"
            path.write_bytes(b"dog 1 2 3\n")
            read(path, 3)
        with pytest.raises(ValueError, match="line 1: must have 5 values.*Received: 3"):
            read(file(GLOVE), 5)
        with pytest.raises(ValueError, match="line 1: must have 5 values.*Received: 3"):
            read(file("4 3\n" + GLOVE), 5)


PROGRAM = """
import sys
import tracemalloc
from keras_transformer.text.vectors import read_vectors

words = {f"w{number}" for number in range(0, 4000, 40)}
tracemalloc.start()
vectors = read_vectors(sys.argv[1], words, 64)
print(len(vectors), tracemalloc.get_traced_memory()[1])
"""


def test_memory_depends_on_the_vocabulary_and_not_on_the_file(tmp_path):
    """100 words of 64 values are 26 kB; the file has about 2 MB."""
    path = tmp_path / "vectors.txt"
    values = " ".join(f"{number / 7:.5f}" for number in range(64))
    path.write_text("".join(f"w{number} {values}\n" for number in range(4000)))
    assert path.stat().st_size > 1.9e6
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    found, peak = map(int, done.stdout.split())
    assert found == 100 and peak < 300_000
