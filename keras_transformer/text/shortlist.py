"""Shortlists: likely target tokens of each source token, in Marian's binary format."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.checks import check_count
from keras_transformer.files import write_bytes
from keras_transformer.tensors import Tensor

MAGIC = 0xF11A48D5013417F5  # identifies the format and its version
HEADER = 6  # words of 64 bits: magic, checksum, first, best, number of offsets, number of ids
NOT_SUMMED = 2  # the words that the checksum does not cover: magic and checksum
WORD = np.dtype("<u8")
ID = np.dtype("<u4")


@dataclasses.dataclass(frozen=True, eq=False)
class Shortlist:
    """Lists of likely target tokens, one list for each source token.

    A search with a shortlist computes logits only for its candidates: the first tokens of the
    vocabulary, which are the most frequent ones, and the lists of the tokens of the source.

    Args:
        first: Number of tokens at the beginning of the vocabulary that are candidates for every
            source.
        best: Maximum length of a list.
        offsets: Integers `[V + 1]` that begin with 0 and do not decrease: the list of source token
            v is `ids[offsets[v]:offsets[v + 1]]`.
        ids: The lists one after the other, as target ids.

    Raises:
        TypeError: If `first` or `best` is not an integer.
        ValueError: If the offsets are invalid, or a list is longer than `best`.

    Example:
        >>> from keras_transformer.decoding import Shortlist
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

    def __post_init__(self) -> None:
        check_count("first", self.first, least=0)
        check_count("best", self.best, least=0)
        offsets, ids = (_integers(name, getattr(self, name)) for name in ("offsets", "ids"))
        lengths = np.diff(offsets)
        ends = offsets[[0, -1]].tolist() if len(offsets) > 1 else []
        if ends != [0, len(ids)] or lengths.min() < 0:
            raise ValueError(
                "`offsets` must begin with 0, not decrease, and end with the number of `ids`, "
                f"{len(ids)}. Received: {len(offsets)} offsets, first and last {ends}."
            )
        if lengths.max() > self.best:
            raise ValueError(
                "`best` must be at least the length of the longest list. "
                f"Received: best={self.best}, a list of {lengths.max()}."
            )
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "ids", ids)

    def __str__(self) -> str:
        return f"shortlist {self.first} + {self.best}"

    def __repr__(self) -> str:
        return f"Shortlist(first={self.first}, best={self.best}, {self.vocab_size} tokens)"

    @property
    def vocab_size(self) -> int:
        """Number of source tokens V."""
        return len(self.offsets) - 1

    @property
    def longest(self) -> int:
        """Length of the longest list."""
        return int(np.diff(self.offsets).max())

    def candidates(self, source: Tensor, always: Any = (), shared: bool = False) -> np.ndarray:
        """Returns the candidates for the output of a source.

        Args:
            source: Ids of the source, integers of any shape.
            always: Further ids that are candidates for every source.
            shared: Whether source and target share a vocabulary. Then the tokens of the source are
                candidates too, so that names and numbers can be copied.

        Returns:
            Array of increasing target ids without repetitions.
        """
        tokens = np.unique(np.asarray(source, np.int64))
        lists = [self.ids[self.offsets[token] : self.offsets[token + 1]] for token in tokens]
        copied = tokens if shared else np.zeros(0, np.int64)
        return np.unique(np.concatenate([np.arange(self.first), always, copied, *lists])).astype(
            np.int64
        )

    def check_sizes(self, source_size: int, target_size: int) -> None:
        """Checks that the shortlist fits vocabularies of these sizes.

        Raises:
            ValueError: If there is not one list for each source token, or an id is not in the
                target vocabulary.
        """
        most = max(self.ids.max(initial=-1) + 1, self.first)
        if self.vocab_size != source_size or most > target_size:
            raise ValueError(
                f"`shortlist` must fit the model's vocabularies: {source_size} source tokens, and "
                f"target ids below {target_size}. Received: {self.vocab_size} source tokens, "
                f"target ids below {most}."
            )

    @classmethod
    def from_counts(
        cls, counts: Any, vocab_size: int, first: int = 50, best: int = 50
    ) -> "Shortlist":
        """Returns the shortlist of the most frequent pairs of a source and a target token.

        If the list of the last source token is empty, it becomes `[0]`, because Marian rejects a
        file in which a list begins after the last id.

        Args:
            counts: Integers `[pairs, 3]`: source id, target id, and the number of times that they
                were aligned. Pairs must be distinct.
            vocab_size: Number of source tokens V.
            first: See `Shortlist`. The lists do not repeat these ids.
            best: Number of target tokens to keep for each source token, the most frequent ones;
                of equally frequent ones those with the lowest ids.
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
    def read(cls, path: str | os.PathLike) -> "Shortlist":
        """Reads a file in Marian's binary format.

        The header is compared with the size of the file before anything else is read.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not a shortlist or is damaged; one line, which names the file.
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
    def from_bytes(cls, content: bytes) -> "Shortlist":
        """Returns the shortlist from the result of `to_bytes`.

        Raises:
            ValueError: If the content is not a shortlist or is damaged.
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

    def write(self, path: str | os.PathLike) -> None:
        """Writes a file in Marian's binary format, whole or not at all.

        Raises:
            OSError: If the file cannot be written.
        """
        write_bytes(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Returns the shortlist in Marian's binary format."""
        sizes = [MAGIC, 0, self.first, self.best, len(self.offsets), len(self.ids)]
        body = self.offsets.astype(WORD).tobytes() + self.ids.astype(ID).tobytes()
        content = np.array(sizes, WORD).tobytes() + body
        sizes[1] = _checksum(content)
        return np.array(sizes, WORD).tobytes() + body


def _integers(name, values):
    array = np.asarray(values)
    if array.ndim != 1 or array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"`{name}` must be a vector of integers. Received: {array.dtype} {array.shape}."
        )
    if array.min(initial=0) < 0:
        raise ValueError(f"`{name}` must not be negative. Received: {array.min()}.")
    return array.astype(np.int64)


def _check_head(content, size):
    """Returns the six numbers of the header; raises `ValueError` if they do not fit the size."""
    if len(content) < HEADER * WORD.itemsize:
        raise ValueError(f"the shortlist is incomplete: it has only {size} bytes.")
    head = np.frombuffer(content, WORD, HEADER).tolist()
    if head[0] != MAGIC:
        raise ValueError(
            f"not a binary shortlist of Marian, which begins with {MAGIC:#x}. "
            f"Received: {head[0]:#018x}."
        )
    offsets, ids = head[-2:]
    wanted = (HEADER + offsets) * WORD.itemsize + ids * ID.itemsize  # Python's: no overflow
    if size != wanted:
        raise ValueError(
            f"the shortlist is damaged: {offsets} offsets and {ids} ids take {wanted} bytes, but "
            f"it has {size}."
        )
    return head


def _checksum(content):
    """Returns Marian's hash of all whole words after magic and checksum."""
    value, mask = 0, 2**64 - 1
    count = len(content) // WORD.itemsize - NOT_SUMMED
    for word in np.frombuffer(content, WORD, count, NOT_SUMMED * WORD.itemsize).tolist():
        value ^= (word + 0x9E3779B9 + (value << 6) + (value >> 2)) & mask
    return value
