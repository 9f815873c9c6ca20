import io

import pytest

from keras_transformer.cli.streaming import answer_stream, score_files
from keras_transformer.tasks.results import Score, Translation


class Upper:
    """Stands for a model: upper case, at most 20 characters; remembers its batches."""

    def __init__(self):
        self.batches = []

    def translate_batch(self, sentences):
        self.batches.append(sentences)
        return [Translation(text[:20].upper(), -1.0, len(text) > 20) for text in sentences]


def run(data, **options):
    translator, target, warnings = Upper(), io.BytesIO(), []
    count = answer_stream(translator, io.BytesIO(data), target, warnings.append, **options)
    return count, target.getvalue(), warnings, translator.batches


@pytest.mark.parametrize("window", [1, 2, 100])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_lines_come_out_in_order_whatever_their_length(window, batch_size):
    lines = [b"one", b"", b"a rather long line", b"xy", b"   ", b"z"]
    count, output, warnings, _ = run(b"\n".join(lines), window=window, batch_size=batch_size)
    assert count == 6
    assert output == b"ONE\n\nA RATHER LONG LINE\nXY\n\nZ\n"
    assert warnings == []


def test_similar_lengths_share_a_batch():
    *_, batches = run(b"aaaaaaa\nb\ncccccc\nd\n", batch_size=2)
    assert batches == [["b", "d"], ["cccccc", "aaaaaaa"]]


def test_bytes_that_are_not_utf8_are_named_and_do_not_stop_the_rest():
    _, output, warnings, _ = run(b"one\n\nab\xffc\ntwo\n")
    assert output == b"ONE\n\n\nTWO\n"
    assert warnings == ["line 3: not UTF-8 (byte 0xff at position 3); left empty"]


def test_a_line_that_was_cut_is_named():
    _, output, warnings, _ = run(b"one\n" + b"x" * 30 + b"\n", window=1)
    assert output == b"ONE\n" + b"X" * 20 + b"\n"
    assert warnings == ["line 2: longer than the model's limit; its end was cut off"]


def test_line_numbers_go_on_across_windows():
    _, _, warnings, _ = run(b"a\nb\nc\n\xfe\n", window=2)
    assert warnings == ["line 4: not UTF-8 (byte 0xfe at position 1); left empty"]


def test_dos_line_ends_and_a_missing_last_one():
    assert run(b"one\r\ntwo")[1] == b"ONE\nTWO\n"


@pytest.mark.parametrize("window", [1, 100])
def test_a_byte_order_mark_is_no_text(window):
    """As in training and in `evaluate`; elsewhere U+FEFF is text."""
    *_, batches = run("\ufeffone\n\ufefftwo\n".encode(), window=window, batch_size=1)
    assert batches == [["one"], ["\ufefftwo"]]


def test_nothing_in_nothing_out():
    assert run(b"")[:3] == (0, b"", [])


def test_a_line_break_inside_a_translation_does_not_add_a_line():
    """Lines end at a line feed: other separators stay, as in an exact quote from a passage."""

    class Breaking:
        def translate_batch(self, sentences):
            return [Translation("a\nb\rc\u2028d\x85e\x0cf", 0.0, False) for _ in sentences]

    target = io.BytesIO()
    answer_stream(Breaking(), io.BytesIO(b"x\n"), target, print)
    assert target.getvalue().decode() == "a b c\u2028d\x85e\x0cf\n"


class Lengths:
    """Stands for a model: the score is the length of the source, the tokens those of the target."""

    def score(self, sources, targets, batch_size):
        return [
            Score(-len(source), len(target), len(source) > 20)
            for source, target in zip(sources, targets, strict=True)
        ]


def score_lines(folder, source, target, **options):
    (folder / "a").write_bytes(source)
    (folder / "b").write_bytes(target)
    output, warnings = io.BytesIO(), []
    count = score_files(Lengths(), folder / "a", folder / "b", output, warnings.append, **options)
    return count, output.getvalue(), warnings


@pytest.mark.parametrize("window", [1, 2, 100])
def test_scores_come_out_line_by_line(tmp_path, window):
    """With empty lines, DOS line ends, and a last line without one."""
    returned = score_lines(tmp_path, b"abc\n\nxy\r\nz", b"d\ne\n\nfour\r\n", window=window)
    assert returned == (4, b"-3.00000\t1\n0.00000\t1\n-2.00000\t0\n-1.00000\t4\n", [])
    assert score_lines(tmp_path, b"", b"") == (0, b"", [])


def test_a_pair_that_was_cut_is_named(tmp_path):
    *_, warnings = score_lines(tmp_path, b"a\n" + b"x" * 30, b"b\nc\n", window=1)
    assert warnings == ["line 2: longer than the model's limit; its end was cut off"]


def test_files_to_score_must_have_as_many_lines_and_be_utf8(tmp_path):
    with pytest.raises(ValueError, match=r"/a has 2 lines, .*/b has 1: line n of one must"):
        score_lines(tmp_path, b"a\nb\n", b"c\n")
    with pytest.raises(ValueError, match=r"/b, line 3: not UTF-8\.$"):
        score_lines(tmp_path, b"a\nb\nc\n", b"a\nb\n\xff\n", window=2)
