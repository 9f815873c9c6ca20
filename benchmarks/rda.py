"""Reader of R's data files (`.rda`) with data frames of numbers, texts and dates."""

import gzip
import struct

MAGIC = b"RDX2\nX\n"  # version 2, big-endian binary
# Types of objects from R's Rinternals.h; the last two exist only in files.
SYMBOL, PAIRS, CHARACTERS, LOGICALS, INTEGERS, REALS, STRINGS, VECTOR = 1, 2, 9, 10, 13, 14, 16, 19
NIL, REFERENCE = 254, 255
HAS_ATTRIBUTES, HAS_TAG = 1 << 9, 1 << 10


class Reader:
    """Reads the objects of a file sequentially.

    Args:
        content: The bytes after the magic number.
    """

    def __init__(self, content):
        self._content, self._position, self._symbols = content, 0, []
        self._take(12)  # versions of the format and of R

    def _take(self, size):
        self._position += size
        return self._content[self._position - size : self._position]

    def _numbers(self, letter, size):
        return struct.unpack(f">{size}{letter}", self._take(size * struct.calcsize(letter)))

    def _integer(self):
        return self._numbers("i", 1)[0]

    def item(self):
        """Returns the next object: a list, a text, `None`, or a dictionary of named values."""
        flags = self._integer()
        kind = flags & 255
        if kind == NIL:
            return None
        if kind == SYMBOL:
            self._symbols.append(self.item())
            return self._symbols[-1]
        if kind == REFERENCE:
            return self._symbols[(flags >> 8) - 1]
        if kind == CHARACTERS:
            size = self._integer()
            return None if size == -1 else self._take(size).decode("utf-8")
        if kind == PAIRS:
            return self._pairs(flags)
        values = self._values(kind)
        attributes = self.item() if flags & HAS_ATTRIBUTES else {}
        if "names" in attributes:
            return dict(zip(attributes["names"], values, strict=True))
        return values

    def _values(self, kind):
        size = self._integer()
        if kind in (LOGICALS, INTEGERS):
            return list(self._numbers("i", size))
        if kind == REALS:
            return list(self._numbers("d", size))
        if kind in (STRINGS, VECTOR):
            return [self.item() for _ in range(size)]
        raise ValueError(f"the file has an object of R's type {kind}, which is not supported")

    def _pairs(self, flags):
        pairs = {}
        while flags & 255 == PAIRS:
            if flags & HAS_ATTRIBUTES:
                self.item()
            tag = self.item() if flags & HAS_TAG else None
            pairs[tag] = self.item()
            flags = self._integer()
        return pairs


def read_rda(content):
    """Returns the objects of a file by name; a data frame is a dictionary of its columns.

    Args:
        content: The bytes of the file, plain or compressed with gzip.

    Raises:
        ValueError: If it is not a data file of R, or has an object that is not supported.
    """
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    if not content.startswith(MAGIC):
        raise ValueError("not a data file of R in its binary format, version 2")
    return Reader(content[len(MAGIC) :]).item()
