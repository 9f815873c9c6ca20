"""Exports show their stages on stderr, and only if the option for it is given."""

import io

import rich.console
from waiting import until

from keras_transformer.cli.input_output import InputOutput
from keras_transformer.cli.progress import counted_lines, shown_progress
from keras_transformer.shards import Shard


def test_in_a_file_there_is_a_line_for_each_stage():
    text = io.StringIO()
    with shown_progress(rich.console.Console(file=text, width=20)) as progress:
        progress("loading [the run]")
        progress("translating 200 texts with the model in memory")
    assert text.getvalue() == (
        "loading [the run] ...\ntranslating 200 texts with the model in memory ...\n"
    )


def test_on_a_terminal_the_stage_is_shown_and_erased():
    text = io.StringIO()
    console = rich.console.Console(file=text, force_terminal=True, width=80)
    with shown_progress(console) as progress:
        progress("converting [x]")
        assert text.getvalue().count("\n") == 0
        assert until(lambda: "converting [x]" in text.getvalue())
    assert text.getvalue().endswith("\x1b[2K")  # the line is erased


def test_the_default_is_stderr(capsys):
    with shown_progress() as progress:
        progress("converting")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "converting ...\n")


def test_a_terminal_shows_how_many_lines_are_answered():
    for total, shown in ((9, "3 of 9 lines"), (None, "3 lines")):
        text = io.StringIO()
        console = rich.console.Console(file=text, force_terminal=True, width=60)
        with counted_lines(total, console) as progress:
            progress(3)
        assert shown in text.getvalue()


def test_elsewhere_answers_have_no_progress():
    text = io.StringIO()
    with counted_lines(9, rich.console.Console(file=text)) as progress:
        progress(3)
    assert text.getvalue() == ""


class Terminal(io.BytesIO):
    def isatty(self):
        return True


def test_progress_is_not_mixed_with_answers_or_with_typed_lines(monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr("keras_transformer.cli.progress.counted_lines", lambda *n: shown.append(n))
    lines, out = tmp_path / "lines.txt", tmp_path / "out.txt"
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setattr("sys.stderr", Terminal())
    with InputOutput(lines, [], None).shown_count(io.BytesIO()) as progress:
        progress(1)  # the answers go to the terminal
    with InputOutput(None, [], out).shown_count(Terminal()) as progress:
        progress(1)  # somebody types
    assert shown == []
    InputOutput(None, [], out).shown_count(io.BytesIO(), 3)
    assert shown == [(3,)]


def test_the_number_of_answers_is_known_for_files(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("a\nb\nc\n")
    assert InputOutput(lines, [], None).total == 3
    assert InputOutput(lines, [], None, Shard(1, 3)).total == 1
    assert InputOutput(None, ["a.wav", "b.wav"], None).total == 2
    assert InputOutput(None, [], None).total is None
