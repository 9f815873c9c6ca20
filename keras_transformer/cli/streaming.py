"""`predict` and `score`: lines in, lines out, in order, whatever is in them."""

import itertools

from keras_transformer.cli.line_searches import Format, OwnSearch
from keras_transformer.tasks.results import Score
from keras_transformer.text.lines import (
    binary_lines,
    count_parallel,
    without_end,
    without_mark,
)

PLAIN = Format()
CUT = "longer than the model's limit; its end was cut off"
NOTHING = Score(0.0, 0, False)  # of a pair that is not scored


def answer_stream(
    search,
    source,
    target,
    warn,
    *,
    batch_size=64,
    window=2048,
    form=PLAIN,
    strict=False,
    bounds=None,
):
    """Answers a stream of lines in another; line n of one becomes line n of the other.

    An empty line stays empty, unless the search answers it. A line longer than the model's limit is
    cut, answered and reported. A bad line, such as one that is not UTF-8 or that names an image
    that cannot be read, is reported and becomes an empty line.

    Args:
        search: One of `line_searches`, anything else that is called like these, or something with
            `translate_batch`. It may have the attributes `blank`, whether an empty line stays
            empty; `parse`, a function from a line to what it is called with, which raises a
            `ValueError` for a bad line; and `strict`, whether every line is part of one input, so
            that a bad one would change the answers to others: then it is given bytes that are not
            UTF-8 as lone surrogates, and raises a `ValueError` itself, which ends the stream.
        source: Binary stream that is read line by line.
        target: Binary stream that is written to and flushed after each window.
        warn: Called with one line of text for each line that is not read whole.
        batch_size: Sentences decoded at a time.
        window: Lines read before the first is written; they are sorted by length. 1 answers each
            line at once.
        form: The `Format` of the output.
        strict: Whether the first bad line is an error. The answers to the lines before it are
            written.
        bounds: First line, from 0, and end of the range of lines to answer; their numbers are those
            of the whole stream. `None`: all lines.

    Returns:
        Number of lines.

    Raises:
        ValueError: For a bad line, with its number, if `strict`.
    """
    if hasattr(search, "translate_batch"):
        search = OwnSearch(search)
    begin, end = bounds or (0, None)
    count, source = begin, itertools.islice(without_mark(source), begin, end)
    while lines := list(itertools.islice(source, window)):
        numbers = range(count + 1, count + 1 + len(lines))
        outcomes = _answer(search, dict(zip(numbers, lines, strict=True)), batch_size, strict)
        for number in numbers:
            outcome = outcomes.get(number)
            if isinstance(outcome, ValueError):
                _report(number, outcome, strict, warn, target)
                outcome = None
            elif outcome and _is_cut(outcome):
                warn(f"line {number}: {CUT}")
            for line in form.lines(number, outcome):
                target.write(line.encode() + b"\n")
        target.flush()
        count += len(lines)
    return count - begin


def _answer(search, lines, batch_size, strict):
    """Results by the numbers of the lines that are answered, or the errors of those that cannot be.

    Args:
        search, batch_size, strict: See `answer_stream`.
        lines: Dictionary from numbers to bytes.
    """
    todo, errors = _read(lambda line: _example(search, line), lines, strict)
    todo = {number: example for number, example in todo.items() if example is not None}
    results = search(list(todo), list(todo.values()), batch_size) if todo else []
    return {**errors, **dict(zip(todo, results, strict=True))}


def _read(read, lines, strict):
    """Returns the results of a function of lines and the `ValueError`s it raises, by line number.

    Args:
        read: The function.
        lines: Dictionary from numbers to lines.
        strict: Whether nothing is read after the first error.
    """
    examples, errors = {}, {}
    for number, line in lines.items():
        try:
            examples[number] = read(line)
        except ValueError as error:
            errors[number] = error
            if strict:
                break
    return examples, errors


def _example(search, line):
    """Returns what a search is called with for a line; `None` for a line that stays empty.

    Raises:
        ValueError: If it is a bad line.
    """
    if getattr(search, "strict", False):
        return without_end(line).decode("utf-8", "surrogateescape")
    text = _text(line)
    if getattr(search, "blank", True) and not text.strip():
        return None
    return search.parse(text) if hasattr(search, "parse") else text


def _report(number, error, strict, warn, target, left="left empty"):
    """Warns of a bad line and how it is left; if `strict`, raises a `ValueError` instead."""
    reason = f"line {number}: {str(error).removesuffix('.')}"
    if strict:
        target.flush()
        raise ValueError(f"{reason}.") from error
    warn(f"{reason}; {left}")


def _is_cut(results):
    return any(getattr(result, "translation", result).truncated for result in results)


def score_files(
    translator, source, target, output, warn, *, batch_size=64, window=2048, strict=False
):
    """Writes for each line of two files how probable the second is as a translation of the first.

    A line of the output is the natural logarithm of the probability, a tab, and the number of
    tokens, the end of the sentence included in both: the perplexity of a file is `exp` of minus the
    sum of the first column over the sum of the second. A pair with a line that is not UTF-8 is
    reported, and has 0 of both, which leaves both sums as they are.

    Args:
        translator: A `Translator`.
        source: Path of the sentences, one per line.
        target: Path of their translations, line by line.
        output: Binary stream, flushed after each window.
        warn: Called with one line of text for each pair that is not scored whole.
        batch_size: Sentences scored at a time.
        window: Lines read before the first is written; they are sorted by length.
        strict: Whether the first bad line is an error. The scores of the pairs before it are
            written.

    Returns:
        Number of lines.

    Raises:
        ValueError: If the files differ in their number of lines; or for a line that is not UTF-8,
            with its file and number, if `strict`.
    """
    count = count_parallel(source, target)
    both = zip(binary_lines(source), binary_lines(target), strict=True)
    numbered = enumerate(both, start=1)
    names = f"{source} is ", f"{target} is "
    while lines := dict(itertools.islice(numbered, window)):
        pairs, errors = _read(lambda pair: [*map(_text, pair, names)], lines, strict)
        sides = zip(*pairs.values(), strict=True) if pairs else ([], [])
        scores = translator.score(*map(list, sides), batch_size=batch_size)
        scores = dict(zip(pairs, scores, strict=True))
        for number in lines:
            if number in errors:
                _report(number, errors[number], strict, warn, output, "not scored")
            result = scores.get(number, NOTHING)
            if result.truncated:
                warn(f"line {number}: {CUT}")
            output.write(f"{result.score:.5f}\t{result.tokens}\n".encode())
        output.flush()
    return count


def _text(line, name=""):
    """Returns a line without its end.

    Args:
        line: Bytes.
        name: What stands before an error, such as the name of a file.

    Raises:
        ValueError: If it is not UTF-8.
    """
    try:
        return without_end(line).decode("utf-8")
    except UnicodeDecodeError as error:
        byte, place = error.object[error.start], error.start + 1
        raise ValueError(f"{name}not UTF-8 (byte 0x{byte:02x} at position {place}).") from None
