"""`keras-transformer chat`: a conversation with an instruct model."""

import contextlib
import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import click

from keras_transformer.cli.command import FOLDER, Command, standard, warn
from keras_transformer.cli.help import option
from keras_transformer.cli.opened import search_of_export
from keras_transformer.cli.search_options import (
    GREEDY,
    make_search,
    option_of,
    sampling,
    search_of_run,
)
from keras_transformer.native_code import ends_promptly

EXAMPLE = """# A conversation:
keras-transformer chat runs/smollm2 --system "Be brief."
# An answer to each line of a file:
keras-transformer chat runs/smollm2 --message "Shorten: {text}" < in.txt"""
PLACE = "{text}"  # of a line of stdin in a message


@click.command(cls=Command, example=EXAMPLE)
@click.argument("model", type=FOLDER)
@option(
    "--system",
    metavar="TEXT",
    help="System message at the beginning of the conversation.  [default: the system message of "
    "the chat template, if there is one]",
)
@option(
    "--message",
    metavar="TEXT",
    help="User message, in which {text} is replaced by a line of stdin. Each line is then a "
    "separate conversation. Its answer is written on one line, with spaces in place of line "
    "breaks.",
)
@option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write each answer as a JSON object on one line, with the fields content and complete; "
    "complete is false if the answer reached its maximum length.",
)
@GREEDY
@option_of("max_output")
@option_of("repetition_penalty")
@sampling
def chat(model, system, message, as_json, **options: Any) -> None:
    """Talk to MODEL, an instruct model with a chat template.

    MODEL is a run, or an .onnx or .tflite file exported with --streaming.

    In a terminal, Ctrl-C stops an answer, and Ctrl-D ends the conversation. If stdin is not a
    terminal, each line is a message. With --message, each line begins a new conversation. If the
    conversation becomes too long for the model, the oldest messages are left out, with a warning.
    """
    target = standard("stdout")  # fails early if stdout is closed
    given = any(options[name] is not None for name in ("max_output", "repetition_penalty"))
    if given and not options["sample"]:
        options["greedy"] = True
    if message is not None and PLACE not in message:
        raise click.UsageError(f"--message must contain {PLACE}, which stands for a line of stdin.")
    from keras_transformer.tasks.language_modelling.chat import Chat

    with ends_promptly():
        conversation = Chat(*_opened(model, options, system))
        if message is not None:
            _answer_lines(conversation, message, target, as_json)
            return
        talks = sys.stdin is not None and sys.stdin.isatty()
        messages = _typed() if talks else filter(str.strip, _lines(standard("stdin")))
        for text in messages:
            with contextlib.suppress(KeyboardInterrupt) if talks else contextlib.nullcontext():
                _answer(conversation, text, target, as_json)
            if not as_json:
                _write(target, "\n")


def _opened(path, options, system):
    """Returns the arguments of a `Chat` with the model at a path."""
    from keras_transformer.opening.forms import RunForm, form_of

    form = form_of(path)
    if form is RunForm:
        return path, system, search_of_run(path, options)
    opened = form.open(path)
    if hasattr(opened, "kept_text"):  # others are refused
        opened = search_of_export(opened, path, make_search(**options))
    return opened, system


def _answer_lines(conversation, message, target, as_json):
    """Writes one line with the answer to a message for each line of stdin."""
    for number, line in enumerate(_lines(standard("stdin")), 1):
        conversation.restart()
        answer = conversation.send(message.replace(PLACE, line)) if line.strip() else ""
        if not conversation.complete:
            warn(f"line {number}: the answer reached its maximum length")
        if as_json:
            _write_json(target, answer, conversation.complete)
        else:
            _write(target, " ".join(answer.split("\n")).replace("\r", "").strip() + "\n")


def _answer(conversation, text, target, as_json):
    """Writes the answer to a message."""
    parts = conversation.stream(text)
    if conversation.dropped:
        warn(f"the model does not see the {conversation.dropped} oldest messages any more")
    if as_json:
        answer = "".join(parts)
        _write_json(target, answer, conversation.complete)
        return
    for part in parts:
        _write(target, part)


def _write_json(target, answer, complete):
    fields = {"content": answer, "complete": complete}
    _write(target, json.dumps(fields, ensure_ascii=False) + "\n")


def _write(target, text):
    target.write(text.encode())
    target.flush()


def _typed() -> Iterator[str]:
    """Yields the messages that a user types, with line editing where the system has it."""
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")  # `input` uses it from then on
    while True:
        try:
            text = input("> ")
        except KeyboardInterrupt:
            click.echo(err=True)
            continue
        except EOFError:
            click.echo(err=True)
            return
        if text.strip():
            yield text


def _lines(stream) -> Iterator[str]:
    """Yields the lines of a stream."""
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} is not UTF-8: {error.reason}.") from error
        yield text
