"""Streams of lines: one output line, or more, for each input line, in order."""

import itertools
from collections.abc import Iterator
from typing import Any

from keras_transformer.opening.lines import LineFormat, lines_of
from keras_transformer.tasks.answering import Answering
from keras_transformer.tasks.incomplete import CUT, INCOMPLETE
from keras_transformer.tasks.results import Score
from keras_transformer.text.lines import (
    binary_lines,
    count_parallel,
    without_end,
    without_mark,
)

PLAIN = LineFormat()
REPEATS = "the text repeats itself: its compression ratio is {:.1f}, above {:g}"
NOT_SCORED = Score(0.0, 0, False)


def answer_stream(
    search,
    source,
    target,
    warn,
    *,
    window=2048,
    form=PLAIN,
    **how,
) -> int:
    """Writes the answers to a stream of lines to another stream, in the same order.

    A bad line becomes an empty one; see `outcomes`.

    Args:
        search, source, warn, window: See `outcomes`.
        target: Binary stream to write, flushed after each window.
        form: The `LineFormat` of the output.
        **how: See `outcomes`.

    Returns:
        Number of lines.

    Raises:
        ValueError: See `outcomes`. The answers to earlier lines are written.
    """
    count = 0
    try:
        for number, outcome in outcomes(search, source, warn, window=window, **how):
            for line in form.lines(number, outcome):
                target.write(line.encode() + b"\n")
            count += 1
            if count % window == 0:
                target.flush()
    finally:
        target.flush()
    return count


def outcomes(
    search,
    source,
    warn,
    *,
    batch_size=64,
    window=2048,
    strict=False,
    bounds=None,
    fate="left empty",
    progress=lambda count: None,
) -> Iterator[tuple[int, Any]]:
    """Yields the number of each line and its results, or `None` for an empty or a bad line.

    An empty line is not answered, unless the search answers it. A line longer than the model's
    limit is truncated, answered and reported. A bad line, such as one that is not UTF-8 or that
    names an unreadable image, is reported.

    Args:
        search: An `Answering`, the result of `lines_of`, or another function with the same
            arguments. Four attributes are optional. `blank`: whether an empty
            line stays empty. `warning`: a function of a line and its results, which returns what to
            report instead of a cut, or `None`. `parse`: a function that converts a line to the
            argument of the search, and raises a `ValueError` for a bad line. `strict`: whether all
            lines form one input, so that a bad line would change the answers to others; such a
            search receives bytes that are not UTF-8 as lone surrogates, and its `ValueError` ends
            the stream.
        source: Binary stream to read.
        warn: Function that is called with a line of text for each line that is bad or truncated.
        batch_size: Number of sentences decoded at a time.
        window: Number of lines to read, and to sort by length, before the first is answered. 1
            answers each line at once.
        strict: Whether the first bad line is an error.
        bounds: First line, from 0, and end of the range of lines to answer. Lines keep the numbers
            that they have in the whole stream. `None`: all lines.
        fate: What becomes of a bad line, for the warning.
        progress: Function that is called after each batch with the number of lines answered so
            far. Empty and bad lines count as answered.

    Raises:
        ValueError: For a bad line if `strict`; the error names its number.
    """
    if isinstance(search, Answering):
        search = lines_of(search)
    begin, end = bounds or (0, None)
    count, source = begin, itertools.islice(without_mark(source), begin, end)
    while lines := list(itertools.islice(source, window)):
        numbers = range(count + 1, count + 1 + len(lines))
        answered = _answer(
            search,
            dict(zip(numbers, lines, strict=True)),
            batch_size,
            strict,
            lambda done, before=count - begin: progress(before + done),
        )
        for number in numbers:
            outcome = answered.get(number)
            if isinstance(outcome, ValueError):
                _report(number, outcome, strict, warn, fate)
                outcome = None
            elif outcome:
                warning = _warning(search, lines[number - count - 1], outcome)
                if warning is not None:
                    warn(f"line {number}: {warning}")
                elif _is_truncated(outcome):
                    warn(f"line {number}: {CUT}")
                if any(_is_incomplete(result) for result in outcome):
                    warn(f"line {number}: {INCOMPLETE}")
                for result in outcome:
                    if getattr(result, "repeats", False):
                        ratios = result.compression_ratio, result.compression_ratio_threshold
                        warn(f"line {number}: {REPEATS.format(*ratios)}")
            yield number, outcome
        count += len(lines)


def _answer(search, lines, batch_size, strict, progress):
    """Returns a dictionary from line numbers to results, or to the errors of bad lines.

    Lines that stay empty are missing.

    Args:
        search, batch_size, strict: See `outcomes`.
        lines: Dictionary from numbers to bytes.
        progress: Function that is called with the number of these lines answered so far.
    """
    todo, errors = _read(lambda line: _example(search, line), lines, strict)
    todo = {number: example for number, example in todo.items() if example is not None}
    others = len(lines) - len(todo)
    results = []
    if todo:
        texts = list(todo.values())
        results = search([*todo], texts, batch_size, lambda done: progress(others + done))
    progress(len(lines))
    return {**errors, **dict(zip(todo, results, strict=True))}


def _read(read, lines, strict):
    """Returns the results of a function of lines, and its `ValueError`s, both by line number.

    Args:
        read: The function.
        lines: Dictionary from numbers to lines.
        strict: Whether to stop reading after the first error.
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
    """Returns the argument of a search for a line, or `None` if the line stays empty.

    Raises:
        ValueError: For a bad line.
    """
    if getattr(search, "strict", False):
        return without_end(line).decode("utf-8", "surrogateescape")
    text = _text(line)
    if getattr(search, "blank", True) and not text.strip():
        return None
    return search.parse(text) if hasattr(search, "parse") else text


def _report(number, error, strict, warn, fate):
    """Warns of a bad line and what became of it; if `strict`, raises a `ValueError` instead."""
    reason = f"line {number}: {str(error).removesuffix('.')}"
    if strict:
        raise ValueError(f"{reason}.") from error
    warn(f"{reason}; {fate}")


def _warning(search, line, results):
    """Returns the search's warning about its results for a line, or `None`."""
    if not hasattr(search, "warning"):
        return None
    return search.warning(without_end(line).decode(), results)


def _is_truncated(results):
    return any(getattr(result, "translation", result).truncated for result in results)


def _is_incomplete(result):
    result = getattr(result, "translation", result)
    return getattr(result, "complete", None) is False and getattr(result, "needs_end", True)


def score_files(
    translator, source, target, output, warn, *, batch_size=64, window=2048, strict=False
) -> int:
    """Writes the score of each pair of lines of two files.

    An output line has the natural logarithm of the probability of the translation, a tab, and its
    number of tokens; both include the end of the sentence. The perplexity of a file is `exp` of
    minus the sum of the first column divided by the sum of the second. A pair with a line that is
    not UTF-8 is reported; its score is 0 with 0 tokens, which does not change the sums.

    Args:
        translator: A `Translator`.
        source: Path of the sentences, one per line.
        target: Path of their translations, one per line.
        output: Binary stream to write, flushed after each window.
        warn: Function that is called with a line of text for each pair that is bad or truncated.
        batch_size: Number of pairs scored at a time.
        window: Number of pairs to read, and to sort by length, before the first is written.
        strict: Whether the first bad line is an error. The scores of earlier pairs are written.

    Returns:
        Number of lines.

    Raises:
        ValueError: If the files differ in their number of lines. If `strict`, also for a line that
            is not UTF-8; the error names its file and number.
    """
    count = count_parallel(source, target)
    both = zip(binary_lines(source), binary_lines(target), strict=True)
    numbered = enumerate(both, start=1)
    names = f"{source} is ", f"{target} is "
    try:
        while lines := dict(itertools.islice(numbered, window)):
            pairs, errors = _read(lambda pair: [*map(_text, pair, names)], lines, strict)
            sides = zip(*pairs.values(), strict=True) if pairs else ([], [])
            scores = translator.score(*map(list, sides), batch_size=batch_size)
            scores = dict(zip(pairs, scores, strict=True))
            for number in lines:
                if number in errors:
                    _report(number, errors[number], strict, warn, "not scored")
                result = scores.get(number, NOT_SCORED)
                if result.truncated:
                    warn(f"line {number}: {CUT}")
                output.write(f"{result.score:.5f}\t{result.tokens}\n".encode())
            output.flush()
    finally:
        output.flush()
    return count


def _text(line, name=""):
    """Returns a line without its end.

    Args:
        line: Bytes.
        name: Beginning of the error, such as the name of a file.

    Raises:
        ValueError: If the line is not UTF-8.
    """
    try:
        return without_end(line).decode("utf-8")
    except UnicodeDecodeError as error:
        byte, place = error.object[error.start], error.start + 1
        raise ValueError(f"{name}not UTF-8 (byte 0x{byte:02x} at position {place}).") from None
