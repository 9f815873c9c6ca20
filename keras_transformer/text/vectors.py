"""Pretrained word vectors in the text formats of GloVe and word2vec, read line by line."""

import math
import re

import numpy as np

from keras_transformer.text.lines import binary_lines, require_regular

SPACE = "\u2581"  # SentencePiece's mark at the beginning of a word
_BYTES_OF_VALUE, _BYTES_OF_WORD = 64, 4096  # at most
# Characters that `float` accepts in a number, such as in "1_0", but that no program writes.
_NOT_IN_A_NUMBER = re.compile(rb"[_\t\v\f\r]")


def words_of(pieces, special=()) -> dict[str, list[int]]:
    """Returns the words of a vocabulary's tokens.

    Both `"▁dog"`, the beginning of a word, and `"dog"`, a part of a word, belong to the word `dog`.
    Special tokens and `"▁"` belong to no word.

    Args:
        pieces: List of the tokens, strings in the order of their ids.
        special: Ids of special tokens, such as padding.

    Returns:
        Dictionary from words to lists of the ids of their tokens.
    """
    words = {}
    for number, piece in enumerate(pieces):
        word = piece.removeprefix(SPACE)
        if word and number not in special:
            words.setdefault(word, []).append(number)
    return words


def read_vectors(path, words, width) -> dict[str, np.ndarray]:
    """Reads the vectors of the given words.

    Each line has a word and its values, separated by single spaces. A word2vec file begins with a
    line of two numbers: the number of its words and the width of its vectors. A GloVe file does
    not. Some words of GloVe contain spaces. Case matters.

    Only one line and the vectors of `words` are in memory at a time.

    Args:
        path: The file; if its name ends in `.gz`, it is decompressed.
        words: A container of the words.
        width: Number of values of a vector.

    Returns:
        Dictionary from the words found in the file to arrays `[width]`, float32.

    Raises:
        ValueError: If a line is not UTF-8, has no word, or does not have `width` finite values; if
            one of `words` occurs twice; if the first line states another number of words; or if the
            file is empty or damaged. The message is one line that names the file and the line.
    """
    vectors, number, header = {}, 0, None
    for number, line in enumerate(_lines(path, width), start=1):
        if number == 1 and (header := _header(line)) is not None:
            _check_width(path, number, header[1], width)
            continue
        word, values = _parse(path, number, line, width)
        if word not in words:
            continue
        if word in vectors:
            raise ValueError(f"{path}, line {number}: {word!r} occurs a second time.")
        vectors[word] = np.array(values, np.float32)
    count = number - (header is not None)
    if header is not None and count != header[0]:
        raise ValueError(
            f"{path}, line 1: states {header[0]:,} words. Received: {count:,} lines of words."
        )
    if not count:
        raise ValueError(f"{path} must have at least one word and its vector. Received: none.")
    return vectors


def check_vectors(path, width) -> None:
    """Checks that a file begins like a file of word vectors; see `read_vectors`.

    Args:
        path: The file.
        width: Number of values of a vector.

    Raises:
        ValueError: If it does not, or is a pipe, which `read_vectors` could not read again. The
            message is one line that names the file.
    """
    require_regular(path)
    for number, line in enumerate(_lines(path, width), start=1):
        header = _header(line) if number == 1 else None
        if header is None:
            _parse(path, number, line, width)
            return
        _check_width(path, number, header[1], width)
    raise ValueError(f"{path} must have at least one word and its vector. Received: none.")


def _lines(path, width):
    """Yields the lines as bytes; a line that is too long raises before it fills the memory."""
    longest = width * _BYTES_OF_VALUE + _BYTES_OF_WORD
    try:
        yield from binary_lines(path, longest)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}.") from None


def _header(line):
    """Returns the two numbers of word2vec's first line, or `None` for another line."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return tuple(map(int, fields))
    return None


def _parse(path, number, line, width):
    """Returns the word and the values of a line."""
    place = f"{path}, line {number}"
    fields = line.rstrip(b" \r\n").split(b" ")
    begin = max(1, len(fields) - width)
    if len(fields) - 1 > width and _are_numbers(fields[1:begin]):
        begin = 1  # too many values rather than a word with spaces
    try:
        values = _numbers(fields[begin:])
    except ValueError:
        wrong = next(field for field in fields[begin:] if not _are_numbers([field]))
        text = wrong.decode("utf-8", "replace")
        raise ValueError(
            f"{place}: values must be numbers, {width} of them after the word. Received: {text!r}."
        ) from None
    _check_width(path, number, len(values), width)
    if not math.isfinite(sum(values)):
        raise ValueError(f"{place}: values must be finite.")
    try:
        word = b" ".join(fields[:begin]).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{place}: must be UTF-8.") from None
    if not word:
        raise ValueError(f"{place}: must begin with a word.")
    return word, values


def _numbers(fields):
    """Returns the values of fields; raises `ValueError` if one is not a number."""
    if _NOT_IN_A_NUMBER.search(b" ".join(fields)):
        raise ValueError
    return list(map(float, fields))


def _are_numbers(fields):
    try:
        _numbers(fields)
    except ValueError:
        return False
    return True


def _check_width(path, number, received, width):
    if received != width:
        raise ValueError(
            f"{path}, line {number}: must have {width} values, as many as `d_model`. "
            f"Received: {received}."
        )
