import io
import os
import re
import types

import pytest
from click.testing import CliRunner
from pipelines import tokenizer

from keras_transformer import Greedy
from keras_transformer.cli.main import cli
from keras_transformer.opening.lines import LineFormat, TextLines
from keras_transformer.opening.stream import answer_stream, score_files
from keras_transformer.pipelines import Generated
from keras_transformer.tasks.answering import TextAnswering
from keras_transformer.tasks.results import Score, Translation


class Upper(TextAnswering):
    """A fake model that returns upper case, at most 20 characters, and records its batches."""

    def __init__(self):
        self.batches = []

    def answer_batch(self, sentences):
        self.batches.append(sentences)
        return [Translation(text[:20].upper(), -1.0, len(text) > 20) for text in sentences]


def run(data, **options):
    translator, target, warnings = Upper(), io.BytesIO(), []
    count = answer_stream(translator, io.BytesIO(data), target, warnings.append, **options)
    return count, target.getvalue(), warnings, translator.batches


@pytest.mark.parametrize("window", [1, 2, 100])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_lines_keep_their_order_whatever_their_length(window, batch_size):
    lines = [b"one", b"", b"a rather long line", b"xy", b"   ", b"z"]
    count, output, warnings, _ = run(b"\n".join(lines), window=window, batch_size=batch_size)
    assert count == 6
    assert output == b"ONE\n\nA RATHER LONG LINE\nXY\n\nZ\n"
    assert warnings == []


def test_similar_lengths_share_a_batch():
    *_, batches = run(b"aaaaaaa\nb\ncccccc\nd\n", batch_size=2)
    assert batches == [["b", "d"], ["cccccc", "aaaaaaa"]]


def test_progress_moves_with_each_batch_and_counts_skipped_lines():
    counts = []
    lines = [b"skipped", b"one", b"", b"two", b"\xff", b"three", b"four", b"five"]
    how = {"batch_size": 2, "bounds": (1, 8), "progress": counts.append}
    run(b"\n".join(lines), window=5, **how)
    assert counts == [4, 5, 5, 7, 7], "2 of 3 texts and 2 skipped lines; the window; the second"


def test_bytes_that_are_not_utf8_are_reported_and_the_rest_continues():
    _, output, warnings, _ = run(b"one\n\nab\xffc\ntwo\n")
    assert output == b"ONE\n\n\nTWO\n"
    assert warnings == ["line 3: not UTF-8 (byte 0xff at position 3); left empty"]


@pytest.mark.parametrize(
    ("most", "words", "warning"),
    [
        (None, 9, None),
        (None, 10, "nearly fills the model's 11 positions: at most 1 new token could follow it"),
        (None, 11, "model's limit; its end was cut off: at most 1 new token could follow it"),
        (5, 7, "nearly fills the model's 11 positions: at most 4 new tokens could follow it"),
        (4, 7, None),
    ],
)
def test_a_prompt_that_leaves_few_positions_is_reported(most, words, warning):
    """The model has 11 positions; each word is a token."""
    prompt, warnings = " the" * words, []
    outputs = [[Generated(prompt, -1.0, words > 10, complete=False)]]

    def answer(texts, **_):
        return outputs[0]

    sides = types.SimpleNamespace(source=tokenizer())
    translator = types.SimpleNamespace(
        answer=answer, blank=False, max_length=11, tokenizers=sides, search=Greedy(most)
    )
    search, target = TextLines(translator), io.BytesIO()
    answer_stream(search, io.BytesIO(prompt.encode()), target, warnings.append)
    assert len(warnings) == (warning is not None)
    assert all(line.startswith("line 1: ") and line.endswith(warning) for line in warnings)
    outputs[0] = [Generated(prompt, -1.0, words > 10, complete=True)]
    answer_stream(search, io.BytesIO(prompt.encode()), target, warnings.append)
    assert len(warnings) == (warning is not None) + (words > 10), "or its output has ended"


def test_a_truncated_line_is_reported():
    _, output, warnings, _ = run(b"one\n" + b"x" * 30 + b"\n", window=1)
    assert output == b"ONE\n" + b"X" * 20 + b"\n"
    assert warnings == ["line 2: longer than the model's limit; its end was cut off"]


def test_line_numbers_go_on_across_windows():
    _, _, warnings, _ = run(b"a\nb\nc\n\xfe\n", window=2)
    assert warnings == ["line 4: not UTF-8 (byte 0xfe at position 1); left empty"]


def strictly(search, data, **options):
    """Returns the output before the error, and the error."""
    target = io.BytesIO()
    with pytest.raises(ValueError) as caught:
        answer_stream(search, io.BytesIO(data), target, print, strict=True, **options)
    return target.getvalue(), str(caught.value)


@pytest.mark.parametrize("window", [1, 2, 100])
def test_strict_writes_the_answers_before_the_first_bad_line_and_stops(window):
    upper = Upper()
    output, error = strictly(upper, b"one\n\nab\xffc\ntwo\n", window=window)
    assert (output, error) == (b"ONE\n\n", "line 3: not UTF-8 (byte 0xff at position 3).")
    assert upper.batches == [["one"]], "nothing after it is answered"


class Digits:
    """A fake model of numbers that rejects odd numbers late, when it computes."""

    def parse(self, line):
        if not line.isdigit():
            raise ValueError(f"must be a number. Received: {line!r}.")
        return int(line)

    def __call__(self, numbers, examples, batch_size, progress):
        odd = ValueError("must be even.")
        return [odd if n % 2 else [Translation(str(n // 2), -n, False)] for n in examples]


@pytest.mark.parametrize("window", [1, 2, 100])
def test_invalid_examples_and_missing_results_become_empty_lines(window):
    target, warnings = io.BytesIO(), []
    data = b"4\nx\n\n3\n8\n\xff\n6\n\r\n \n"
    form = LineFormat(numbers=True, scores=True)
    answer_stream(Digits(), io.BytesIO(data), target, warnings.append, window=window, form=form)
    assert target.getvalue().decode().splitlines() == [
        "1\t-4.00000\t2", "2\t0.00000\t", "3\t0.00000\t", "4\t0.00000\t", "5\t-8.00000\t4",
        "6\t0.00000\t", "7\t-6.00000\t3", "8\t0.00000\t", "9\t0.00000\t",
    ]  # fmt: skip
    assert warnings == [
        "line 2: must be a number. Received: 'x'; left empty",
        "line 4: must be even; left empty",
        "line 6: not UTF-8 (byte 0xff at position 1); left empty",
    ]
    assert strictly(Digits(), data[:2] + data[4:], window=window) == (
        b"2\n\n",
        "line 3: must be even.",
    )


def test_a_single_pass_search_gets_every_line_and_stops_at_a_bad_one():
    """Needed for a series, whose later steps depend on all earlier ones."""

    class Sums:
        blank, strict = False, True
        total = 0

        def __call__(self, numbers, texts, batch_size, progress):
            results = []
            for number, text in zip(numbers, texts, strict=True):
                value = text.split(",")[0]
                if not value.isdigit():
                    raise ValueError(f"line {number}: must begin with a number.")
                self.total += int(value)
                results.append([Translation(str(self.total), 0.0, False)])
            return results

    target = io.BytesIO()
    answer_stream(Sums(), io.BytesIO(b"1,caf\xe9\n2\n"), target, pytest.fail)
    assert target.getvalue() == b"1\n3\n"
    with pytest.raises(ValueError, match=r"^line 2: must begin with a number\.$"):
        answer_stream(Sums(), io.BytesIO(b"1\n\xe9\n2\n"), io.BytesIO(), pytest.fail)


def test_dos_line_ends_and_a_missing_last_line_end():
    assert run(b"one\r\ntwo")[1] == b"ONE\nTWO\n"


@pytest.mark.parametrize("window", [1, 100])
def test_a_byte_order_mark_is_not_text(window):
    """As in training and in `evaluate`; anywhere else U+FEFF is text."""
    *_, batches = run("\ufeffone\n\ufefftwo\n".encode(), window=window, batch_size=1)
    assert batches == [["one"], ["\ufefftwo"]]


def test_no_lines_give_no_output():
    assert run(b"")[:3] == (0, b"", [])


def test_a_line_break_inside_a_translation_does_not_add_a_line():
    """A line ends at a line feed; other separators stay, as in an exact quote from a passage."""

    class Breaking(TextAnswering):
        def answer_batch(self, sentences):
            return [Translation("a\nb\rc\u2028d\x85e\x0cf", 0.0, False) for _ in sentences]

    target = io.BytesIO()
    answer_stream(Breaking(), io.BytesIO(b"x\n"), target, print)
    assert target.getvalue().decode() == "a b c\u2028d\x85e\x0cf\n"


class Lengths:
    """A fake model: the score is the length of the source, token scores are the target."""

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
    """With empty lines, DOS line ends, and a last line without a line end."""
    returned = score_lines(tmp_path, b"abc\n\nxy\r\nz", b"d\ne\n\nfour\r\n", window=window)
    assert returned == (4, b"-3.00000\t1\n0.00000\t1\n-2.00000\t0\n-1.00000\t4\n", [])
    assert score_lines(tmp_path, b"", b"") == (0, b"", [])


def test_a_truncated_pair_is_reported(tmp_path):
    *_, warnings = score_lines(tmp_path, b"a\n" + b"x" * 30, b"b\nc\n", window=1)
    assert warnings == ["line 2: longer than the model's limit; its end was cut off"]


def test_files_to_score_must_have_equal_numbers_of_lines(tmp_path):
    with pytest.raises(ValueError, match=r"/a has 2 lines, .*/b has 1: line n of one must"):
        score_lines(tmp_path, b"a\nb\n", b"c\n")


@pytest.mark.parametrize("window", [1, 2, 100])
def test_a_pair_that_is_not_utf8_has_no_tokens(tmp_path, window):
    files = b"a\nb\nccc\n", b"d\n\xff\nef\n"
    count, output, warnings = score_lines(tmp_path, *files, window=window)
    assert (count, output) == (3, b"-1.00000\t1\n0.00000\t0\n-3.00000\t2\n")
    reason = f"line 2: {tmp_path}/b is not UTF-8 (byte 0xff at position 1)"
    assert warnings == [f"{reason}; not scored"]
    output = io.BytesIO()
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}\\.$"):
        score_files(
            Lengths(), tmp_path / "a", tmp_path / "b", output, print, window=window, strict=True
        )
    assert output.getvalue() == b"-1.00000\t1\n"


@pytest.fixture
def pipe(tmp_path):
    """Path of a named pipe, which can be read once, as the `<(...)` of a shell."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("side", ["source", "target"])
def test_score_refuses_a_pipe_which_it_would_read_twice(pipe, side):
    file = pipe.with_name("lines")
    file.write_text("a\n")
    paths = {"source": file, "target": file, side: pipe}
    options = [text for name, path in paths.items() for text in (f"--{name}", str(path))]
    done = CliRunner().invoke(cli, ["score", "run", *options])
    assert done.exit_code == 1 and done.stdout == ""
    assert f"Error: {pipe} must be a regular file, because it is read more than" in done.stderr


def test_a_shard_of_a_pipe_is_refused(pipe):
    done = CliRunner().invoke(cli, ["translate", "run", "--input", str(pipe), "--shard", "0/2"])
    assert done.exit_code == 1 and done.stdout == ""
    assert f"Error: {pipe} must be a regular file, because it is read more than" in done.stderr
