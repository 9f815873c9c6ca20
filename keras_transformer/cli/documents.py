"""Options of `predict` for documents, which replace its lines."""

from typing import Any

import click

from keras_transformer.cli.command import given, refuse
from keras_transformer.cli.help import add_options, option
from keras_transformer.tasks.incomplete import INCOMPLETE

NAMES = ("split_sentences", "format", "sentence_language", "keep")
# Options that concern lines.
OF_LINES = (
    "shard",
    "strict",
    "scores",
    "alignments",
    "n_best",
    "stream",
    "subtitles",
    "timestamps",
)
FORMATS = ("text", "wrapped", "html", "xml", "markdown")
GROUP = "Documents"


def document_options(command) -> Any:
    """Adds the options of documents to a command."""
    return add_options(
        command,
        option(
            "--split-sentences",
            is_flag=True,
            group=GROUP,
            help="Translate the input as a document: translate every sentence separately, and "
            "keep the white space between sentences, lines and paragraphs.",
        ),
        option(
            "--format",
            type=click.Choice(FORMATS),
            group=GROUP,
            help="Format of the document, whose markup is kept. Implies --split-sentences. "
            "text: a line is a paragraph. wrapped: the lines of a paragraph are joined.  "
            "[default: text]",
        ),
        option(
            "--sentence-language",
            metavar="CODE",
            group=GROUP,
            help="Language of the document, such as de. Abbreviations of this language do not end "
            "a sentence. Implies --split-sentences.  [default: --source-language, otherwise en]",
        ),
        option(
            "--keep",
            metavar="REGEX",
            multiple=True,
            group=GROUP,
            help="Copy passages of the document that match this regular expression, in addition to "
            "URLs, e-mail addresses and placeholders such as {name} and %s. If REGEX is the "
            "word numbers, all numbers are copied. Implies --split-sentences. May be repeated.",
        ),
    )


def without_documents(options) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Returns the options of documents, `None` if none is set, and all others."""
    others = {name: value for name, value in options.items() if name not in NAMES}
    if given(*NAMES) is None:
        return None, others
    refuse(OF_LINES, f"has no effect with --{_named()}, which reads a document.")
    return {name: options[name] for name in NAMES}, others


def write_document(lines, source, output, warn, options, batch_size, progress) -> None:
    """Translates a document as a whole.

    Args:
        lines: The function of `open_lines`.
        source: Binary stream to read.
        output: Binary stream to write.
        warn: Function that is called with a line of text for each kind of problem.
        options: The options of documents.
        batch_size: Number of sentences to translate at a time.
        progress: Function that is called with the number of sentences translated so far.

    Raises:
        click.UsageError: If the model does not translate.
        ValueError: If the document is not UTF-8, or not in its format.
    """
    from keras_transformer.documents.documents import Documents
    from keras_transformer.documents.sentences import SentenceSplitter

    answering = getattr(lines, "answering", None)
    if not Documents.suits(answering):
        task = getattr(answering, "task", "something else")
        raise click.UsageError(f"--{_named()} needs a model for translation, not one for {task}.")
    language = options["sentence_language"]
    documents = Documents(
        answering,
        options["format"] or "text",
        None if language is None else SentenceSplitter(language),
        options["keep"],
    )
    result = documents.answer(_decoded(source.read()), batch_size=batch_size, progress=progress)
    output.write(result.text.encode())
    output.flush()
    for sentence in result.sentences:
        if sentence.translation.truncated:
            warn(f"{_shown(sentence)}: longer than the model's limit and cut")
        if sentence.translation.complete is False:
            warn(f"{_shown(sentence)}: {INCOMPLETE}")
    parts = sum(sentence.is_part for sentence in result.sentences)
    if parts:
        warn(f"sentences longer than the model's limit were translated in {parts} parts")
    if result.placed_by_order:
        warn(
            f"marks in {result.placed_by_order} sentences are placed by the order of the words; "
            "a model that aligns places them by its attention, with --greedy"
        )


def _named():
    return (given(*NAMES) or "").replace("_", "-")


def _shown(sentence):
    text = sentence.source if len(sentence.source) < 40 else f"{sentence.source[:37]}..."
    return f"sentence {text!r}"


def _decoded(data):
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"a document must be UTF-8. Received: byte 0x{data[error.start]:02x} in line {line}."
        ) from None
