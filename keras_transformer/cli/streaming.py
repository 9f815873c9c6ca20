"""`predict` and `score`: lines in, lines out, in order, whatever is in them."""

import itertools

from keras_transformer.cli.line_searches import Best, Format
from keras_transformer.text.lines import (
    binary_lines,
    count_parallel,
    decode_line,
    without_end,
    without_mark,
)

PLAIN = Format()


def answer_stream(search, source, target, warn, *, batch_size=64, window=2048, form=PLAIN):
    """Answers a stream of lines in another; line n of one becomes line n of the other.

    An empty line stays empty, unless the search answers it. A line that is not UTF-8 is reported
    and becomes an empty line, unless the search names another way with `decoding_errors`. A line
    longer than the model's limit is cut, answered and reported.

    Args:
        search: One of `line_searches`, or anything with `translate_batch`.
        source: Binary stream that is read line by line.
        target: Binary stream that is written to and flushed after each window.
        warn: Called with one line of text for each line that is not read whole.
        batch_size: Sentences decoded at a time.
        window: Lines read before the first is written; they are sorted by length. 1 answers each
            line at once.
        form: The `Format` of the output.

    Returns:
        Number of lines.
    """
    if hasattr(search, "translate_batch"):
        search = Best(search)
    count, source = 0, without_mark(source)
    while lines := list(itertools.islice(source, window)):
        texts = (_text(line, getattr(search, "decoding_errors", "strict")) for line in lines)
        numbered = list(enumerate(texts, start=count + 1))
        for number, text in numbered:
            if isinstance(text, UnicodeDecodeError):
                byte = text.object[text.start]
                warn(
                    f"line {number}: not UTF-8 (byte 0x{byte:02x} at position {text.start + 1}); "
                    "left empty"
                )
        blank = getattr(search, "blank", True)
        todo = {number: text for number, text in numbered if _is_asked(text, blank)}
        results = search(list(todo), list(todo.values()), batch_size) if todo else []
        results = dict(zip(todo, results, strict=True))
        for number, result in results.items():
            if _is_cut(result):
                warn(f"line {number}: longer than the model's limit; its end was cut off")
        for number, _ in numbered:
            for line in form.lines(number, results.get(number)):
                target.write(line.encode() + b"\n")
        target.flush()
        count += len(lines)
    return count


def _is_cut(results):
    return any(getattr(result, "translation", result).truncated for result in results)


def score_files(translator, source, target, output, warn, *, batch_size=64, window=2048):
    """Writes for each line of two files how probable the second is as a translation of the first.

    A line of the output is the natural logarithm of the probability, a tab, and the number of
    tokens, the end of the sentence included in both: the perplexity of a file is `exp` of minus the
    sum of the first column over the sum of the second.

    Args:
        translator: A `Translator`.
        source: Path of the sentences, one per line.
        target: Path of their translations, line by line.
        output: Binary stream, flushed after each window.
        warn: Called with one line of text for each pair that is not scored whole.
        batch_size: Sentences scored at a time.
        window: Lines read before the first is written; they are sorted by length.

    Returns:
        Number of lines.

    Raises:
        ValueError: If the files differ in their number of lines, or a line is not UTF-8.
    """
    count = count_parallel(source, target)
    both = zip(binary_lines(source), binary_lines(target), strict=True)
    numbered = enumerate(both, start=1)
    while lines := list(itertools.islice(numbered, window)):
        pairs = [
            (decode_line(source, number, first), decode_line(target, number, second))
            for number, (first, second) in lines
        ]
        results = translator.score(*zip(*pairs, strict=True), batch_size=batch_size)
        for (number, _), result in zip(lines, results, strict=True):
            if result.truncated:
                warn(f"line {number}: longer than the model's limit; its end was cut off")
            output.write(f"{result.score:.5f}\t{result.tokens}\n".encode())
        output.flush()
    return count


def _text(line, errors):
    """The line without its end, or the error that says why it is not text."""
    try:
        return without_end(line).decode("utf-8", errors)
    except UnicodeDecodeError as error:
        return error


def _is_asked(text, blank):
    """Whether a line is to be answered: it is text, and not empty if empty ones stay empty."""
    return isinstance(text, str) and (not blank or bool(text.strip()))
