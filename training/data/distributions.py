"""Predictions of teachers for the target tokens of training pairs, in a folder of files."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.files import read_json, replacing, write_json
from keras_transformer.tensors import Tensor

MANIFEST = "manifest.json"
READ_AT_ONCE = 4096  # rows
KEYS = 2**62  # number of different keys of pairs


def pair_keys(sources, targets) -> Tensor:
    """Returns a number for each pair of texts, int64 `[B]`, by which its predictions are known."""
    return tf.strings.to_hash_bucket_fast(tf.strings.join([sources, targets], "\t"), KEYS)


def vocabulary_digest(tokenizer) -> str:
    """Returns a checksum of the files of a `Tokenizer`."""
    checksum = hashlib.sha256()
    for name, content in sorted(tokenizer.files().items()):
        checksum.update(f"{name} {len(content)} ".encode() + content)
    return checksum.hexdigest()


class Distributions:
    """Predictions for each pair of a training split, in its order.

    A part is an archive of arrays for some consecutive pairs: `keys` of the pairs and `lengths` of
    their targets, both `[pairs]`; `tokens` and `probabilities`, `[target tokens, K]`, uint16 (int32
    for a large vocabulary) and float16.

    Args:
        folder: The folder, with `manifest.json`, which is written when all parts are complete.

    Attributes:
        k: Number K of tokens at each position.
        vocab_size: Size of the vocabulary.
        rows: Number of pairs.
        fingerprint: Checksum of all predictions.

    Raises:
        ValueError: If they are not complete, or the manifest is damaged.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        manifest = read_json(self.folder / MANIFEST)
        if manifest is None:
            raise ValueError(
                f"{self.folder} does not contain all predictions of the teachers: repeat `distill` "
                "with `--word-level`."
            )
        try:
            self.k, self.vocab_size, self.rows = (
                int(manifest[name]) for name in ("k", "vocab_size", "rows")
            )
            self._checksums, self._vocabulary = list(manifest["parts"]), manifest["vocabulary"]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.folder / MANIFEST} is damaged ({error!r}).") from error
        text = json.dumps(manifest, sort_keys=True)
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()

    def check(self, tokenizer) -> None:
        """Raises a `ValueError` unless a `Tokenizer` of targets has the teachers' vocabulary."""
        if vocabulary_digest(tokenizer) != self._vocabulary:
            raise ValueError(
                f"{self.folder} has predictions for another vocabulary: a student with word-level "
                "targets needs the vocabulary of its teachers."
            )

    def dataset(self) -> tf.data.Dataset:
        """Returns the rows: a key, and the bytes of `tokens` and of `probabilities`, all scalars.

        Raises:
            ValueError: If a part is missing or damaged.
        """
        for number, checksum in enumerate(self._checksums):
            path = part_path(self.folder, number)
            if not path.is_file() or zlib.crc32(path.read_bytes()) != checksum:
                raise ValueError(
                    f"{path} is missing or damaged: remove {self.folder} and repeat `distill`."
                )
        specs = [tf.TensorSpec([None], dtype) for dtype in (tf.int64, tf.string, tf.string)]
        batches = tf.data.Dataset.from_generator(self._batches, output_signature=tuple(specs))
        return batches.unbatch()

    def _batches(self):
        for number in range(len(self._checksums)):
            with np.load(part_path(self.folder, number), allow_pickle=False) as arrays:
                keys, lengths = arrays["keys"], arrays["lengths"]
                tokens, probabilities = arrays["tokens"], arrays["probabilities"]
            ends = np.concatenate([[0], np.cumsum(lengths)]).tolist()
            for begin in range(0, len(keys), READ_AT_ONCE):
                rows = range(begin, min(begin + READ_AT_ONCE, len(keys)))
                columns = (
                    np.array([column[ends[row] : ends[row + 1]].tobytes() for row in rows], object)
                    for column in (tokens, probabilities)
                )
                yield keys[begin : rows.stop], *columns


def part_path(folder, number) -> Path:
    """Returns the path of a part of `Distributions`."""
    return Path(folder) / f"part-{number:06d}.npz"


def write_part(folder, number, **arrays: Any) -> None:
    """Writes a part, which is complete or absent: see `Distributions`."""
    with replacing(part_path(folder, number)) as draft, open(draft, "wb") as file:
        np.savez(file, **arrays)


def write_manifest(folder, parts, **metadata: Any) -> None:
    """Writes the manifest when all parts are complete.

    Args:
        folder: The folder of the `Distributions`.
        parts: Number of parts.
        **metadata: `k`, `vocab_size`, `rows`, `vocabulary` (see `vocabulary_digest`), and others.
    """
    checksums = [zlib.crc32(part_path(folder, number).read_bytes()) for number in range(parts)]
    write_json(Path(folder) / MANIFEST, {**metadata, "parts": checksums})
