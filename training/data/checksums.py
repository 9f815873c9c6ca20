"""Checksums of the blocks of a file, verified when a block is first read."""

import contextlib
import re
import zlib
from collections.abc import Generator
from pathlib import Path

import numpy as np
import tensorflow as tf

# Random rows are in many blocks, each of which is read completely the first time: small blocks keep
# the first batches fast, and even a corpus of 4.5 GB has only 140 kB of checksums.
BLOCK = 2**18  # bytes


class DamagedStore(ValueError):
    """Error because the content of a file in a store has changed or is missing."""


def damaged(path: Path, problem: str) -> DamagedStore:
    """Returns the error for a file of a store.

    Args:
        path: The file.
        problem: The reason, a clause that begins with "it".
    """
    return DamagedStore(
        f"{path} is damaged: {problem}. Remove the folder {path.parent} to have it written again."
    )


def block_checksums(path: Path) -> str:
    """Returns the CRC-32 checksums of the blocks of a file, eight hexadecimal digits each."""
    with open(path, "rb") as file:
        return "".join(f"{zlib.crc32(block):08x}" for block in iter(lambda: file.read(BLOCK), b""))


class BlockVerifier:
    """Verifier of the blocks of a memory-mapped file, which compares each block once.

    Args:
        path: The file.
        content: Content of the file, mapped into memory, uint8.
        checksums: Result of `block_checksums` when the file was written.

    Attributes:
        verified: True for each block that has been compared, bool `[blocks]`.
        is_complete: Whether all blocks have been compared.
    """

    def __init__(self, path: Path, content: np.ndarray, checksums: str):
        self._path, self._content = path, content
        self._checksums = np.frombuffer(bytes.fromhex(checksums), ">u4")
        self.verified = np.zeros(-(-len(content) // BLOCK), bool)
        self.is_complete = False
        if len(self._checksums) != len(self.verified):
            raise damaged(path, f"it must have {len(self._checksums):,} blocks with checksums")

    def verify(self, begins: np.ndarray, ends: np.ndarray) -> None:
        """Compares the blocks in some ranges of bytes that have not been compared yet.

        Args:
            begins: First byte of each range, integers `[ranges]`.
            ends: End of each range, exclusive, integers `[ranges]`.

        Raises:
            DamagedStore: If the checksum of a block is wrong.
        """
        begins, ends = begins[begins < ends], ends[begins < ends]
        if not len(begins):
            return
        first, last = begins // BLOCK, (ends - 1) // BLOCK
        for step in range(int((last - first).max()) + 1):
            blocks = np.minimum(first + step, last)
            for block in np.unique(blocks[~self.verified[blocks]]).tolist():
                self._verify(block)
        self.is_complete = bool(self.verified.all())

    def _verify(self, block: int) -> None:
        # Two threads may compare the same block, which is harmless.
        content = self._content[block * BLOCK : (block + 1) * BLOCK]
        if zlib.crc32(content) != self._checksums[block]:
            raise damaged(self._path, f"the checksum of its block {block} is wrong")
        self.verified[block] = True


@contextlib.contextmanager
def plain_damage() -> Generator[None]:
    """Context manager that restores a `DamagedStore` that TensorFlow has wrapped in another error.

    Raises:
        DamagedStore: From the block, if a batch could not be read because its store is damaged.
    """
    try:
        yield
    except tf.errors.OpError as error:
        found = re.search(r"DamagedStore: (.+)", error.message)
        if found is None:
            raise
        raise DamagedStore(found[1]) from error
