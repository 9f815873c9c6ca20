"""Text files with one sentence per line, plain or gzip; errors name the file and the line.

A line ends only at a line feed. Carriage returns before the line feed are dropped; anywhere else
they are part of the text.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

BOM = b"\xef\xbb\xbf"  # some editors begin a file with it


def is_gzip(path) -> bool:
    """Returns true if a file is read as gzip because its name ends in `.gz`."""
    return Path(path).suffix == ".gz"


def open_binary(path) -> io.BufferedIOBase:
    """Opens a file to read bytes, which are decompressed if its name ends in `.gz`."""
    return gzip.open(path, "rb") if is_gzip(path) else open(path, "rb")


def require_regular(path) -> None:
    """Refuses a path that can be read only once.

    Args:
        path: Path of a file that will be read several times. A missing file is not refused.

    Raises:
        ValueError: If it is a pipe or a device.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(
            f"{path} must be a regular file, because it is read more than once: write the text to "
            "a file first. Received: a pipe or a device."
        )


def binary_lines(path, longest=None) -> Iterator[bytes]:
    """Yields the lines of a file as bytes with their line ends, without a byte order mark.

    Args:
        path: Path of the file; if its name ends in `.gz`, it is decompressed.
        longest: Maximum length of a line, in bytes. `None`: no limit.

    Raises:
        ValueError: If a `.gz` file is not gzip or is damaged, or a line is too long. The message
            names the file and the line.
    """
    number = 0
    try:
        with open_binary(path) as file:
            lines = file if longest is None else iter(lambda: file.readline(longest + 1), b"")
            for number, line in enumerate(lines, start=1):
                if longest is not None and len(line) > longest:
                    raise ValueError(f"{path}, line {number}: must have at most {longest:,} bytes.")
                yield line.removeprefix(BOM) if number == 1 else line
    except gzip.BadGzipFile as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{path}, line {number + 1}: not gzip, or damaged ({reason}).") from None
    except (EOFError, zlib.error):
        raise ValueError(
            f"{path}, line {number + 1}: the gzip file is damaged or ends too early."
        ) from None


def without_mark(lines) -> Iterator[bytes]:
    """Yields lines, bytes, without the byte order mark of the first one."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(BOM)


def without_end(line) -> bytes:
    """Returns a line, bytes, without the line feed and the carriage returns at its end."""
    return line.rstrip(b"\r\n")


def one_line(text) -> str:
    """Returns a text on one line: its line ends become spaces."""
    return " ".join(text.replace("\r", "\n").split("\n"))


def read_lines(path, errors="strict") -> list[str]:
    """Returns the lines of a UTF-8 file as strings, without a byte order mark at its start.

    Args:
        path: Path of the file; if its name ends in `.gz`, it is decompressed.
        errors: See `decode_line`.

    Raises:
        ValueError: If a line is not UTF-8, or a gzip file is damaged. The message names the file
            and the line.
    """
    numbered = enumerate(binary_lines(path), start=1)
    return [decode_line(path, number, line, errors) for number, line in numbered]


def read_parallel(source, target, errors="strict") -> tuple[list[str], list[str]]:
    """Returns the lines of two parallel files: line n of one belongs to line n of the other.

    Args:
        source: Path of the first file, such as texts.
        target: Path of the second one, such as their translations or labels.
        errors: See `decode_line`.

    Returns:
        Two lists of strings.

    Raises:
        ValueError: If a line is not UTF-8, a gzip file is damaged, or the files have different
            numbers of lines.
    """
    both = read_lines(source, errors), read_lines(target, errors)
    _check_equal(source, len(both[0]), target, len(both[1]))
    return both


def count_parallel(source, target) -> int:
    """Returns the number of lines of two files that will be read again.

    Raises:
        ValueError: If the numbers differ, or one of the files is a pipe, which is read once.
    """
    for path in (source, target):
        require_regular(path)
    counts = [sum(1 for _ in binary_lines(path)) for path in (source, target)]
    _check_equal(source, counts[0], target, counts[1])
    return counts[0]


def decode_line(path, number, line, errors="strict") -> str:
    """Returns a line as a string without its end.

    Args:
        path: Path of its file, for the message.
        number: Its number, from 1, for the message.
        line: Bytes.
        errors: How to handle invalid UTF-8: see `bytes.decode`.

    Raises:
        ValueError: If it is not UTF-8.
    """
    try:
        return without_end(line).decode("utf-8", errors)
    except UnicodeDecodeError:
        raise ValueError(f"{path}, line {number}: not UTF-8.") from None


def _check_equal(source, sources, target, targets):
    if sources != targets:
        raise ValueError(
            f"{source} has {sources} lines, {target} has {targets}: "
            "line n of one must belong to line n of the other."
        )


def parse_lines(parse, lines, name, numbers=None) -> list:
    """Parses lines; errors name the line.

    Args:
        parse: Function of a line.
        lines: List of strings.
        name: Word for a line in errors.
        numbers: Number of each line in errors. `None`: counted from 1.

    Returns:
        A list of the results of `parse`.

    Raises:
        ValueError: If `parse` raises one.
    """
    numbers = range(1, len(lines) + 1) if numbers is None else numbers
    parsed = []
    for number, line in zip(numbers, lines, strict=True):
        try:
            parsed.append(parse(line))
        except ValueError as error:
            raise ValueError(f"{name} {number}: {error}") from None
    return parsed
