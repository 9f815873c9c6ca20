"""Text files of one sentence per line, read with errors that name file and line."""

from pathlib import Path

BOM = b"\xef\xbb\xbf"  # some editors begin a file with it


def read_lines(path):
    """Returns the lines of a UTF-8 file as strings.

    Lines end at a line feed, nowhere else; a carriage return before it is not part of the line, nor
    is a byte order mark at the start of the file.

    Args:
        path: Path of the file.

    Raises:
        ValueError: If a line is not UTF-8. The message names the file and the line.
    """
    lines = Path(path).read_bytes().removeprefix(BOM).split(b"\n")
    if not lines[-1]:
        lines.pop()  # the last line ends in a line break; there is none behind it
    return [decode_line(path, number, line) for number, line in enumerate(lines, start=1)]


def read_parallel(source, target):
    """Returns the lines of two files, of which line n of one translates line n of the other.

    Args:
        source: Path of the sentences.
        target: Path of their translations.

    Returns:
        Two lists of strings.

    Raises:
        ValueError: If a line is not UTF-8, or the files differ in their number of lines.
    """
    both = read_lines(source), read_lines(target)
    _check_equal(source, len(both[0]), target, len(both[1]))
    return both


def count_parallel(source, target):
    """Returns how many lines two files have; raises `ValueError` if not the same number."""
    counts = []
    for path in (source, target):
        with open(path, "rb") as file:
            counts.append(sum(1 for _ in file))
    _check_equal(source, counts[0], target, counts[1])
    return counts[0]


def decode_line(path, number, line):
    """Returns a line as a string without its end.

    Args:
        path: Path of its file, for the message.
        number: Its number, from 1, for the message.
        line: Bytes.

    Raises:
        ValueError: If it is not UTF-8.
    """
    try:
        return line.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}, line {number}: not UTF-8.") from None


def _check_equal(source, sources, target, targets):
    if sources != targets:
        raise ValueError(
            f"{source} has {sources} lines, {target} has {targets}: "
            "line n of one must translate line n of the other."
        )
