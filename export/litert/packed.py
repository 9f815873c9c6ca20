"""Vocabulary and JSON metadata of a .tflite file, a ZIP archive at its end."""

import dataclasses
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from keras_transformer.export.metadata import (
    DAMAGED,
    METADATA,
    VOCABULARY,
    parse_metadata,
    read_vocabulary,
    reading,
)
from keras_transformer.export.unrolled import UnrolledSearch
from keras_transformer.files import json_text
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.pair import FILES

FORMAT = 3
# Keys of the metadata.
SIGNATURES, STRINGS = "signatures", "string_signatures"
FURTHER = "further_signatures"  # of `Codec.further_signatures`
CHECKSUM = "crc32"  # of the model
BLOCK = 2**20  # bytes that are read at a time


@dataclasses.dataclass(frozen=True)
class FixedSignature:
    """A function of fixed shape in a .tflite file.

    Args:
        name: Name of the function in the file.
        batch_size: Number of sentences in a batch.
        source_length: Maximum source length in tokens, including `eos_id`.
        target_length: Maximum output length in tokens, including `eos_id`; 1 for a label.
        max_length: Maximum number of new tokens of greedy search, without those that the output
            begins with. `None`: only `target_length` limits it.
        beam_size: Number of hypotheses of the beam. `None`: greedy search.
        n_best: Number of hypotheses that are returned.
        alignment: Layer and head of the decoder whose attention is returned, a pair of integers; a
            head of `None` is the mean of the layer's heads. `None`: no attention is returned.
        unrolled: The `UnrolledSearch`, whose two functions are in the file instead of one with this
            name. `None`: the loop of the search is in the file.
    """

    name: str
    batch_size: int
    source_length: int
    target_length: int = 1
    beam_size: int | None = None
    n_best: int = 1
    alignment: tuple | None = None
    max_length: int | None = None
    unrolled: UnrolledSearch | None = None

    def __post_init__(self) -> None:
        sizes = self.batch_size, self.source_length, self.target_length, self.n_best
        sizes += self.beam_size or 1, self.max_length or 1
        if not all(isinstance(size, int) and size > 0 for size in sizes):
            raise ValueError(f"The sizes of a signature must be positive integers: {self}.")
        if self.alignment is not None:  # JSON has lists only
            object.__setattr__(self, "alignment", tuple(self.alignment))
        if isinstance(self.unrolled, dict):
            object.__setattr__(self, "unrolled", UnrolledSearch(**self.unrolled))

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of its functions in the file."""
        if self.unrolled is None:
            return (self.name,)
        return self.unrolled.encode, self.unrolled.step

    def run(self, call: Callable[..., dict[str, Any]], **inputs: Any) -> dict[str, Any]:
        """Returns the outputs by name.

        Args:
            call: Function that calls a function of the file: its name, then inputs by name.
            **inputs: Arrays by the names of the inputs.

        Raises:
            ExportError: If a search that is unrolled does not end.
        """
        if self.unrolled is None:
            return call(self.name, **inputs)
        return self.unrolled.run(call, self.target_length, **inputs)


def make_signatures(
    lengths,
    batch_sizes,
    target_length,
    greedy_length,
    beam_size=None,
    n_best=1,
    alignment=None,
    names=("greedy", "beam"),
    max_length=None,
) -> list[FixedSignature]:
    """Returns a list of signatures: greedy search for every shape, then the beam.

    Args:
        lengths, batch_sizes: Source lengths and batch sizes; every combination is a shape.
        target_length: Maximum output length of the beam.
        greedy_length: Maximum output length of greedy search. `None`: there is no greedy search.
        beam_size: Number of hypotheses of the beam. `None`: there is no beam.
        n_best, alignment: See `FixedSignature`.
        names: Prefixes of the names of signatures with greedy search and with the beam.
        max_length: See `FixedSignature`.
    """
    greedy, beam = names
    shapes = [(f"{batch}x{length}", batch, length) for length in lengths for batch in batch_sizes]
    signatures = []
    if greedy_length is not None:
        signatures += [
            FixedSignature(
                f"{greedy}_{shape}",
                *sizes,
                greedy_length,
                alignment=alignment,
                max_length=max_length,
            )
            for shape, *sizes in shapes
        ]
    if beam_size is not None:
        signatures += [
            FixedSignature(f"{beam}{beam_size}_{shape}", *sizes, target_length, beam_size, n_best)
            for shape, *sizes in shapes
        ]
    return signatures


def pack(path, content, tokenizers, metadata, compressed=False) -> None:
    """Writes a model, followed by the vocabulary, or both vocabularies, and the metadata.

    Args:
        path: The file, a `pathlib.Path`.
        content: The bytes of the model.
        tokenizers: The `Tokenizers`, or `None` if the model does not process text.
        metadata: Dictionary of values that JSON can represent.
        compressed: Whether the archive is compressed (deflate), to less than half of its size.
    """
    metadata = {**metadata, CHECKSUM: zlib.crc32(content)}
    if tokenizers is None:
        metadata[VOCABULARY] = False
    path.unlink(missing_ok=True)  # not overwritten, because an interpreter may have it mapped
    path.write_bytes(content)
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "a") as archive:
        members = {} if tokenizers is None else tokenizers.files() | tokenizers.code_points()
        members[METADATA] = json_text(metadata).encode()
        for name, member in members.items():
            # Without a date, so that equal models have equal files.
            archive.writestr(zipfile.ZipInfo(name), member, kind, compresslevel=9)


def unpack(path) -> tuple[dict[str, Any], dict[str, list[FixedSignature]], Tokenizers | None]:
    """Reads a file that `pack` has written, and checks that it is not damaged.

    Args:
        path: The file, a `pathlib.Path`.

    Returns:
        The metadata, a dictionary; a dictionary from `SIGNATURES`, and those of `STRINGS` and
        `FURTHER` that the file has, to lists of `FixedSignature`s; and the `Tokenizers`, `None` if
        the model does not process text.

    Raises:
        ValueError: If the file was written by another program or another version, or is damaged.
        OSError: If it cannot be read.
    """
    if not path.exists():
        raise ValueError(f"{path} does not exist.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a .tflite file.")
    size, members = _split(path)
    metadata = parse_metadata(path, members[METADATA], FORMAT)
    with reading(path, METADATA):
        signatures = {
            kind: [FixedSignature(**fields) for fields in metadata[kind]]
            for kind in (SIGNATURES, STRINGS, FURTHER)
            if kind == SIGNATURES or kind in metadata
        }
        if not all(signatures.values()):
            raise ValueError(SIGNATURES)
    tokenizers = read_vocabulary(path, metadata, members.get)
    if CHECKSUM in metadata and _checksum(path, size) != metadata[CHECKSUM]:
        raise ValueError(
            f"{path} is damaged: its model is not the one that was written. Export it again."
        )
    return metadata, signatures, tokenizers


def read_model(path) -> bytes:
    """Returns the bytes of the model in a file that `pack` has written.

    Raises:
        ValueError: If the file was written by another program.
        OSError: If it cannot be read.
    """
    size, _ = _split(path)
    with path.open("rb") as file:
        return file.read(size)


def _checksum(path, size):
    """Returns the checksum of the first `size` bytes of a file, which is not held in memory."""
    checksum = 0
    with path.open("rb") as file:
        while size > 0 and (block := file.read(min(size, BLOCK))):
            checksum, size = zlib.crc32(block, checksum), size - len(block)
    return checksum


def _split(path):
    """Returns the size of the model, and a dictionary of the members of the archive by name."""
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                begin = min(item.header_offset for item in archive.infolist())
                names = {METADATA, *FILES} & set(archive.namelist())
                if METADATA not in names:
                    raise KeyError(METADATA)
                return begin, {name: archive.read(name) for name in names}
        except DAMAGED as error:
            raise ValueError(
                f"{path} was not written by `keras-transformer export litert`, or is damaged: "
                "it contains no metadata."
            ) from error
