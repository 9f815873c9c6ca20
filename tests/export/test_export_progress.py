"""Exports show their stages on stderr, and only if the option for it is given."""

import io
import time

import rich.console

from keras_transformer.cli.progress import shown_progress


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
        time.sleep(0.3)  # it is drawn ten times a second
        assert "converting [x]" in text.getvalue()
    assert text.getvalue().endswith("\x1b[2K")  # the line is erased


def test_the_default_is_stderr(capsys):
    with shown_progress() as progress:
        progress("converting")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "converting ...\n")
