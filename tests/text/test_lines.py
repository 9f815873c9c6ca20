"""Text files of one sentence per line."""

import pytest

from keras_transformer.text.lines import count_parallel, read_lines, read_parallel


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\n\r\ntwo\r\n", ["one", "", "two"]),
        ("\ufeffein Stra\u00dfe\n".encode(), ["ein Straße"]),
        # These separators do not end a line.
        ("a\u2028b\x0bc\x85d\n".encode(), ["a\u2028b\x0bc\x85d"]),
    ],
)
def test_lines(tmp_path, text, lines):
    path = tmp_path / "x.txt"
    path.write_bytes(text)
    assert read_lines(path) == lines


def test_a_line_that_is_not_utf8_is_reported(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"one\nt\xffo\n")
    with pytest.raises(ValueError, match=r"x\.txt, line 2: not UTF-8\.$"):
        read_lines(path)


@pytest.mark.parametrize("read", [read_parallel, count_parallel])
def test_files_of_different_lengths_are_refused(tmp_path, read):
    (tmp_path / "x.txt").write_text("one\ntwo\n")
    (tmp_path / "y.txt").write_text("eins\n")
    with pytest.raises(ValueError, match=r"x\.txt has 2 lines, .*y\.txt has 1: line n .* belong"):
        read(tmp_path / "x.txt", tmp_path / "y.txt")


def test_parallel_lines(tmp_path):
    (tmp_path / "x.txt").write_text("one\ntwo\n")
    (tmp_path / "y.txt").write_text("eins\nzwei")
    paths = tmp_path / "x.txt", tmp_path / "y.txt"
    assert read_parallel(*paths) == (["one", "two"], ["eins", "zwei"])
    assert count_parallel(*paths) == 2
