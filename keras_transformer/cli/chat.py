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


@click.command(cls=Command, example='keras-transformer chat runs/smollm2 --system "Be brief."')
@click.argument("model", type=FOLDER)
@option(
    "--system",
    metavar="TEXT",
    help="Message of the system, which begins the conversation.  [default: that of the chat "
    "template, if it has one]",
)
@option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write each answer as a line of JSON: an object with its content, and with complete, "
    "which is false if it reached its maximum length.",
)
@GREEDY
@option_of("max_output")
@option_of("repetition_penalty")
@sampling
def chat(model, system, as_json, **options: Any) -> None:
    """Talk to MODEL, an instruct model with a chat template.

    MODEL is a run, or an .onnx file that was exported with --streaming.

    In a terminal, Ctrl-C stops an answer, and Ctrl-D ends the conversation. Otherwise each line of
    stdin is a message. If the conversation becomes too long for the model, the oldest messages are
    left out, with a warning.
    """
    target = standard("stdout")  # fails early if stdout is closed
    given = any(options[name] is not None for name in ("max_output", "repetition_penalty"))
    if given and not options["sample"]:
        options["greedy"] = True
    from keras_transformer.tasks.language_modelling.chat import Chat

    with ends_promptly():
        conversation = Chat(*_opened(model, options, system))
        talks = sys.stdin is not None and sys.stdin.isatty()
        messages = _typed() if talks else _lines(standard("stdin"))
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


def _answer(conversation, text, target, as_json):
    """Writes the answer to a message."""
    parts = conversation.stream(text)
    if conversation.dropped:
        warn(f"the model does not see the {conversation.dropped} oldest messages any more")
    if as_json:
        answer = "".join(parts)
        fields = {"content": answer, "complete": conversation.complete}
        _write(target, json.dumps(fields, ensure_ascii=False) + "\n")
        return
    for part in parts:
        _write(target, part)


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
    """Yields the lines of a stream that are not empty."""
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} is not UTF-8: {error.reason}.") from error
        if text.strip():
            yield text
