"""Pretrained word vectors: the text formats of GloVe and word2vec, read line by line."""

import math
import re

import numpy as np

from keras_transformer.text.lines import binary_lines

SPACE = "\u2581"  # what SentencePiece writes for the space before a word
_BYTES_OF_VALUE, _BYTES_OF_WORD = 64, 4096  # most of each in a line
# What `float` takes in a number, but no program writes into one: "1_0" is 10 for it.
_NO_PART_OF_A_NUMBER = re.compile(rb"[_\t\v\f\r]")


def words_of(pieces, special=()):
    """Returns the ids of the pieces of a vocabulary by the word that each of them stands for.

    A piece at the beginning of a word, `"▁dog"`, stands for `dog`; so does `"dog"`, a piece inside
    of words, which is looked up as it is. Special pieces and `"▁"` alone stand for none.

    Args:
        pieces: List of strings, by id.
        special: Ids of special pieces, such as padding.

    Returns:
        Dictionary from words to lists of ids.
    """
    words = {}
    for number, piece in enumerate(pieces):
        word = piece.removeprefix(SPACE)
        if word and number not in special:
            words.setdefault(word, []).append(number)
    return words


def read_vectors(path, words, width):
    """Reads the vectors of some words.

    A line is a word and its values, with single spaces between them. A file of word2vec begins with
    a line of two numbers, of its words and of the values of each; one of GloVe does not. A word may
    hold spaces itself, as some of GloVe's do. Words are compared as they are written.

    No more is in memory than a line and the vectors of `words`.

    Args:
        path: The file; if its name ends in `.gz`, it is decompressed.
        words: The words, anything with `in`.
        width: Number of values of a vector.

    Returns:
        Dictionary from those of the words that are in the file to arrays `[width]`, float32.

    Raises:
        ValueError: If a line is not UTF-8, has no word, not `width` values or one that is not
            finite, if one of `words` is there twice, if the first line promises other lines, or the
            file is empty or not a gzip file. One line, which names the file and the line.
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
            raise ValueError(f"{path}, line {number}: {word!r} has a vector already, before.")
        vectors[word] = np.array(values, np.float32)
    count = number - (header is not None)
    if header is not None and count != header[0]:
        raise ValueError(
            f"{path}, line 1: promises {header[0]:,} words. Received: {count:,} lines of them."
        )
    if not count:
        raise ValueError(f"{path} must hold at least one word and its vector. Received: none.")
    return vectors


def check_vectors(path, width):
    """Raises unless a file begins as one of vectors with so many values; see `read_vectors`.

    Raises:
        ValueError: One line, which names the file, and where there is one the line.
    """
    for number, line in enumerate(_lines(path, width), start=1):
        header = _header(line) if number == 1 else None
        if header is None:
            _parse(path, number, line, width)
            return
        _check_width(path, number, header[1], width)
    raise ValueError(f"{path} must hold at least one word and its vector. Received: none.")


def _lines(path, width):
    """The lines as bytes; an endless one is refused before it fills the memory."""
    longest = width * _BYTES_OF_VALUE + _BYTES_OF_WORD
    try:
        yield from binary_lines(path, longest)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}.") from None


def _header(line):
    """The two numbers of word2vec's first line, or `None`."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return tuple(map(int, fields))
    return None


def _parse(path, number, line, width):
    """The word and the values of a line."""
    place = f"{path}, line {number}"
    fields = line.rstrip(b" \r\n").split(b" ")
    begin = max(1, len(fields) - width)
    if len(fields) - 1 > width and _are_numbers(fields[1:begin]):
        begin = 1  # no word with spaces, but more values
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
    """The values of fields; raises a `ValueError` if one is no number."""
    if _NO_PART_OF_A_NUMBER.search(b" ".join(fields)):
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
