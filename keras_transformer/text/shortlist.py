"""Shortlists: for each source piece the target pieces it may become, in Marian's binary format."""

import dataclasses
import os
from pathlib import Path

import numpy as np

from keras_transformer.checks import check_count
from keras_transformer.files import write_bytes

MAGIC = 0xF11A48D5013417F5  # names the format and its version
HEADER = 6  # words of 64 bits: magic, checksum, first, best, number of offsets, number of ids
UNSUMMED = 2  # of these, before what the checksum covers
WORD = np.dtype("<u8")
ID = np.dtype("<u4")


@dataclasses.dataclass(frozen=True, eq=False)
class Shortlist:
    """For each source piece the ids of target pieces that it may become.

    A search that takes it computes the logits of candidates alone: the first pieces of the
    vocabulary, which are the most frequent ones, and those in the lists of the source's pieces.

    Args:
        first: How many pieces at the beginning of the vocabulary are candidates of every source.
        best: How many there are at most in a list.
        offsets: Integers `[V + 1]`, not decreasing from 0 on: the list of source piece v is
            `ids[offsets[v]:offsets[v + 1]]`.
        ids: The lists one after the other, target ids, integers.

    Raises:
        TypeError: If `first` or `best` is not an integer.
        ValueError: If the offsets are not as described, or a list is longer than `best`.

    Example:
        >>> from keras_transformer import Shortlist
        >>> shortlist = Shortlist(first=2, best=2, offsets=[0, 0, 0, 2, 3], ids=[5, 7, 6])
        >>> shortlist.candidates([2, 3]).tolist()
        [0, 1, 5, 6, 7]
        >>> Shortlist.from_bytes(shortlist.to_bytes()).vocab_size
        4
    """

    first: int
    best: int
    offsets: np.ndarray
    ids: np.ndarray

    def __post_init__(self):
        check_count("first", self.first, least=0)
        check_count("best", self.best, least=0)
        offsets, ids = (_integers(name, getattr(self, name)) for name in ("offsets", "ids"))
        lengths = np.diff(offsets)
        ends = offsets[[0, -1]].tolist() if len(offsets) > 1 else []
        if ends != [0, len(ids)] or lengths.min() < 0:
            raise ValueError(
                "`offsets` must be integers that begin with 0, do not decrease and end in the "
                f"number of `ids`, {len(ids)}. Received: {len(offsets)} of them, from first to "
                f"last {ends}."
            )
        if lengths.max() > self.best:
            raise ValueError(
                f"`best` must be the length of the longest list, or more. Received: "
                f"best={self.best}, a list of {lengths.max()}."
            )
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "ids", ids)

    def __str__(self):
        return f"shortlist {self.first} + {self.best}"

    def __repr__(self):
        return f"Shortlist(first={self.first}, best={self.best}, {self.vocab_size} pieces)"

    @property
    def vocab_size(self):
        """Number of source pieces V."""
        return len(self.offsets) - 1

    @property
    def longest(self):
        """Length of the longest list."""
        return int(np.diff(self.offsets).max())

    def candidates(self, source, always=(), shared=False):
        """Returns the target ids that an output for a source is made of, in order.

        Args:
            source: Ids of the source, integers of any shape.
            always: Ids that are candidates of every source, beside the first ones.
            shared: Whether source and target have one vocabulary: then a piece may become itself,
                as names and numbers do.

        Returns:
            Array of increasing ids, each once.
        """
        pieces = np.unique(np.asarray(source, np.int64))
        lists = [self.ids[self.offsets[piece] : self.offsets[piece + 1]] for piece in pieces]
        own = pieces if shared else np.zeros(0, np.int64)
        return np.unique(np.concatenate([np.arange(self.first), always, own, *lists])).astype(
            np.int64
        )

    def check_sizes(self, source_size, target_size):
        """Raises unless it is one for vocabularies of these sizes.

        Raises:
            ValueError: If it has another number of lists, or ids that the target does not have.
        """
        most = max(self.ids.max(initial=-1) + 1, self.first)
        if self.vocab_size != source_size or most > target_size:
            raise ValueError(
                f"`shortlist` must be of the model's vocabulary: {source_size} source pieces, and "
                f"ids below {target_size}. Received: {self.vocab_size} source pieces, ids below "
                f"{most}."
            )

    @classmethod
    def from_counts(cls, counts, vocab_size, first=50, best=50):
        """Returns the shortlist of the most frequent pairs.

        The last source piece has the id 0 in its list if it has no other: Marian reads no file in
        which a list begins after the last id.

        Args:
            counts: Integers `[pairs, 3]`: source id, target id, and how often they went together;
                each pair once.
            vocab_size: Number of source pieces V.
            first: See `Shortlist`. These ids are in no list, which has room for others.
            best: How many of each source piece, the most frequent ones; of equally frequent ones
                those of the lower id.
        """
        source, target, count = np.asarray(counts, np.int64).reshape(-1, 3).T
        kept = target >= first
        source, target, count = source[kept], target[kept], count[kept]
        order = np.lexsort((target, -count, source))
        begins = np.searchsorted(source[order], np.arange(vocab_size))
        ranks = np.arange(len(order)) - begins[source[order]]
        order = order[ranks < best]
        order = order[np.lexsort((target[order], source[order]))]
        lengths, ids = np.bincount(source[order], minlength=vocab_size), target[order]
        if lengths[-1] == 0:
            lengths[-1], ids = 1, np.append(ids, 0)
        return cls(first, best, np.concatenate([[0], np.cumsum(lengths)]), ids)

    @classmethod
    def read(cls, path):
        """Reads a file in Marian's binary format.

        Nothing but the first 48 bytes is read before the size of the file is known to be that
        which they state.

        Raises:
            OSError: If it cannot be read.
            ValueError: If it is something else or damaged. One line, which names the file.
        """
        path = Path(os.fspath(path))
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                head = file.read(HEADER * WORD.itemsize)
                _check_head(head, size)
                return cls.from_bytes(head + file.read(size - len(head)))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def from_bytes(cls, content):
        """Returns the shortlist that `to_bytes` described.

        Raises:
            ValueError: If it is something else or damaged.
        """
        _, checksum, first, best, offsets, _ = _check_head(content, len(content))
        actual = _checksum(content)
        if actual != checksum:
            raise ValueError(
                f"the shortlist is damaged: its checksum is {actual:#018x}, not {checksum:#018x}."
            )
        begin, end = HEADER * WORD.itemsize, (HEADER + offsets) * WORD.itemsize
        rows = np.frombuffer(content[begin:end], WORD)
        if rows.max(initial=0) > (len(content) - end) // ID.itemsize:
            raise ValueError("the shortlist is damaged: a list ends after the last id.")
        ids = np.frombuffer(content[end:], ID)
        try:
            return cls(first, best, rows.astype(np.int64), ids.astype(np.int64))
        except ValueError as error:
            raise ValueError(f"the shortlist is damaged: {error}") from error

    def write(self, path):
        """Writes a file in Marian's binary format, whole or not at all.

        Raises:
            OSError: If it cannot be written.
        """
        write_bytes(path, self.to_bytes())

    def to_bytes(self):
        """Returns it in Marian's binary format."""
        sizes = [MAGIC, 0, self.first, self.best, len(self.offsets), len(self.ids)]
        body = self.offsets.astype(WORD).tobytes() + self.ids.astype(ID).tobytes()
        content = np.array(sizes, WORD).tobytes() + body
        sizes[1] = _checksum(content)
        return np.array(sizes, WORD).tobytes() + body


def _integers(name, values):
    array = np.asarray(values)
    if array.ndim != 1 or array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"`{name}` must be integers, [number]. Received: {array.dtype} {array.shape}."
        )
    if array.min(initial=0) < 0:
        raise ValueError(f"`{name}` must not be negative. Received: {array.min()}.")
    return array.astype(np.int64)


def _check_head(content, size):
    """Returns the six numbers at the beginning; raises unless they state the size of the file."""
    if len(content) < HEADER * WORD.itemsize:
        raise ValueError(f"the shortlist is cut off: it has {size} bytes.")
    head = np.frombuffer(content, WORD, HEADER).tolist()
    if head[0] != MAGIC:
        raise ValueError(
            f"it is not a binary shortlist of Marian's, which begins with {MAGIC:#x}. "
            f"Received: {head[0]:#018x}."
        )
    offsets, ids = head[-2:]
    wanted = (HEADER + offsets) * WORD.itemsize + ids * ID.itemsize  # no overflow: Python's numbers
    if size != wanted:
        raise ValueError(
            f"the shortlist is damaged: {offsets} offsets and {ids} ids take {wanted} bytes, and "
            f"there are {size}."
        )
    return head


def _checksum(content):
    """Marian's hash of all whole words after magic and checksum."""
    value, mask = 0, 2**64 - 1
    count = len(content) // WORD.itemsize - UNSUMMED
    for word in np.frombuffer(content, WORD, count, UNSUMMED * WORD.itemsize).tolist():
        value ^= (word + 0x9E3779B9 + (value << 6) + (value >> 2)) & mask
    return value
