"""The vocabulary and JSON metadata, which a .tflite file carries as a ZIP archive at its end."""

import contextlib
import dataclasses
import io
import json
import zipfile
import zlib

from keras_transformer.tasks import TASKS
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.pair import FILES

FORMAT = 2
METADATA = "metadata.json"
SIGNATURES, STRINGS = "signatures", "string_signatures"  # in the metadata
CHECKSUM = "crc32"  # of the model, in the metadata
VOCABULARY = "vocabulary"  # in the metadata of a model of anything but text: false
# What damage makes `zipfile`, `json` and `FixedSignature` raise.
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError),
    *(ValueError, TypeError, LookupError),
)


@dataclasses.dataclass(frozen=True)
class FixedSignature:
    """A function in a .tflite file, of fixed shape.

    Args:
        name: Its name in the file.
        batch_size: Sentences at a time.
        source_length: Longest source, in tokens, `eos_id` included.
        target_length: Longest output, in tokens, `eos_id` included; 1 where that is a label.
        beam_size: Hypotheses of its beam. `None`: it searches greedily.
        n_best: How many of them it returns.
        alignment: A decoder layer and a head, or `None` for the mean of its heads: it
            returns what each token of the output attended to there. `None`: it does not.
    """

    name: str
    batch_size: int
    source_length: int
    target_length: int = 1
    beam_size: int | None = None
    n_best: int = 1
    alignment: tuple | None = None

    def __post_init__(self):
        sizes = self.batch_size, self.source_length, self.target_length, self.n_best
        if not all(isinstance(size, int) and size > 0 for size in (*sizes, self.beam_size or 1)):
            raise ValueError(f"The sizes of a signature must be positive integers: {self}.")
        if self.alignment is not None:  # JSON knows lists only
            object.__setattr__(self, "alignment", tuple(self.alignment))


def make_signatures(
    lengths,
    batch_sizes,
    target_length,
    beam_size=None,
    n_best=1,
    alignment=None,
    greedy_length=None,
    names=("greedy", "beam"),
):
    """Returns signatures, greedy search for all shapes and then the beam.

    Args:
        lengths, batch_sizes: Their shapes.
        target_length, beam_size, n_best, alignment: See `FixedSignature`.
        greedy_length: Longest output of greedy search. `None`: `target_length`.
        names: How those of greedy search and those of the beam are called.
    """
    greedy, beam = names
    greedy_length = greedy_length or target_length
    shapes = [(f"{batch}x{length}", batch, length) for length in lengths for batch in batch_sizes]
    signatures = [
        FixedSignature(f"{greedy}_{shape}", *sizes, greedy_length, alignment=alignment)
        for shape, *sizes in shapes
    ]
    if beam_size is not None:
        signatures += [
            FixedSignature(f"{beam}{beam_size}_{shape}", *sizes, target_length, beam_size, n_best)
            for shape, *sizes in shapes
        ]
    return signatures


def pack(path, content, tokenizers, metadata):
    """Writes a model, and after it its vocabulary, or both of them, and the metadata.

    Args:
        path: The file, a `Path`.
        content: The bytes of the model.
        tokenizers: The `Tokenizers`, or `None` for a model of anything but text.
        metadata: Dictionary of plain values.
    """
    metadata = {**metadata, CHECKSUM: zlib.crc32(content)}
    if tokenizers is None:
        metadata[VOCABULARY] = False
    path.unlink(missing_ok=True)  # not overwritten: an interpreter may still have it mapped
    path.write_bytes(content)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
        members = {} if tokenizers is None else tokenizers.files()
        members[METADATA] = json.dumps(metadata, indent=2).encode()
        for name, member in members.items():
            archive.writestr(zipfile.ZipInfo(name), member)  # no date: equal models, equal files


def unpack(path):
    """Reads what `pack` wrote, and checks that nothing of it is damaged.

    Args:
        path: The file, a `Path`.

    Returns:
        The metadata, a dictionary of plain values; its lists of `FixedSignature`, by
        their names there; and the `Tokenizers`, `None` of a model of anything but text.

    Raises:
        ValueError: If it was written by something else or by another version, or is damaged.
        OSError: If it cannot be read.
    """
    if not path.exists():
        raise ValueError(f"{path} does not exist.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a .tflite file.")
    content, members = _split(path)
    with _reading(path, METADATA):
        metadata = dict(json.loads(members[METADATA]))
        version = metadata["format"]
    if version != FORMAT:
        raise ValueError(
            f"{path} has format {version}; this package reads format {FORMAT}. Export it again."
        )
    with _reading(path, METADATA):
        required = (("max_length", int),) if metadata.get(VOCABULARY, True) else ()
        for name, kind in (*required, ("quantize", str), ("task", str)):
            if not isinstance(metadata[name], kind):
                raise TypeError(name)
        if metadata["task"] not in TASKS:
            raise ValueError(metadata["task"])
        signatures = {
            kind: [FixedSignature(**fields) for fields in metadata[kind]]
            for kind in (SIGNATURES, STRINGS)
            if kind == SIGNATURES or kind in metadata
        }
        if not all(signatures.values()):
            raise ValueError(SIGNATURES)
    tokenizers = None
    if metadata.get(VOCABULARY, True):
        with _reading(path, "vocabulary"):
            tokenizers = Tokenizers.from_files(members.get)
    if zlib.crc32(content) != metadata.get(CHECKSUM, zlib.crc32(content)):
        raise ValueError(
            f"{path} is damaged: its model is not the one that was written. Export it again."
        )
    return metadata, signatures, tokenizers


def _split(path):
    """The bytes of the model, and of the members of the archive by their names."""
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            begin = min(item.header_offset for item in archive.infolist())
            names = {METADATA, *FILES} & set(archive.namelist())
            if METADATA not in names:
                raise KeyError(METADATA)
            return content[:begin], {name: archive.read(name) for name in names}
    except DAMAGED as error:
        raise ValueError(
            f"{path} was not written by `keras-transformer export litert`, or is damaged: "
            "it carries no vocabulary."
        ) from error


@contextlib.contextmanager
def _reading(path, member):
    """Names the file and the member of it that is damaged."""
    try:
        yield
    except DAMAGED as error:
        raise ValueError(
            f"{path} is damaged: its {member} cannot be read. Export it again."
        ) from error
