"""Recordings in files, with their transcripts in a table or beside them."""

import hashlib
import json
import os
import pathlib
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.speech_recognition.audio.files import SUFFIXES, read_audio
from keras_transformer.text.lines import read_lines
from keras_transformer.training.data.sources.base import SPLITS, Source
from keras_transformer.training.tasks.speech_recognition.recordings import Recordings
from keras_transformer.training.tasks.speech_recognition.speed_copies import at_speeds


class SpeechFiles(Recordings):
    """Recordings in files, which are decoded whenever they are read.

    Args:
        files: Dictionary from a split to a list of pairs: path and transcript.
        description: Content and origin of the data, in one line for users.
        sample_rate: Samples per second; other recordings are converted.
    """

    def __init__(self, files, description, sample_rate):
        self._files = files
        identities = {split: _state_of(pairs) for split, pairs in files.items()}
        counts = {split: len(pairs) for split, pairs in files.items()}
        super().__init__(
            counts, description, sample_rate, self._decoded, identities, self._transcripts
        )

    def requests(self, split) -> tf.data.Dataset:
        """Returns paths and transcripts, so that errors of a pipeline name the file."""
        self.check_split(split)
        paths, texts = zip(*((str(path), text) for path, text in self._files[split]), strict=True)
        with tf.device("CPU:0"):
            return tf.data.Dataset.from_tensor_slices(([*paths], [*texts]))

    def _decoded(self, split) -> Iterator[tuple[np.ndarray, str]]:
        for path, text in self._files[split]:
            yield read_audio(path, self._rate), text

    def _transcripts(self, split) -> Iterator[str]:
        return (text for _, text in self._files[split])

    def check(self) -> None:
        """Reads every file once.

        Raises:
            ValueError: If one cannot be read. One line, which names it.
        """
        for split in self.splits:
            for _ in self._decoded(split):
                pass


def open_speech_files(settings) -> Source:
    """Finds the recordings that a `[data]` section names.

    Raises:
        ValueError: If a table, a folder, a recording or a transcript is missing or empty. One line,
            which names it; or if a recording is in two splits.
    """
    files = {
        split: find_recordings(getattr(settings, split))
        for split in SPLITS
        if getattr(settings, split) is not None
    }
    _check_apart(files)
    data = SpeechFiles(files, f"the recordings in {settings.train}", settings.sample_rate)
    return at_speeds(data, settings)


def _check_apart(files):
    """Raises a `ValueError` if a recording is in two splits, such as in a folder within another."""
    splits = {}
    for split, pairs in files.items():
        for path in {path.resolve() for path, _ in pairs}:
            if path in splits:
                raise ValueError(f"{path}: must not be in {splits[path]} and in {split}.")
            splits[path] = split


def find_recordings(place) -> list[tuple[pathlib.Path, str]]:
    """Returns the recordings of a table or of a folder.

    Args:
        place: Path of a table, whose lines are the path of a recording, relative to the table's
            folder, a tab and the transcript; or of a folder with recordings at any depth, each with
            a `.txt` file of the same name beside it.

    Returns:
        List of pairs, path and transcript: in the order of the table, or sorted by path. White
        space in transcripts is single spaces.

    Raises:
        ValueError: If a path is missing, a line is wrong, a transcript is empty or there is no
            recording. One line.
    """
    place = pathlib.Path(place)
    if place.is_dir():
        pairs = list(_in_folder(place))
    elif place.is_file():
        pairs = list(_in_table(place))
    else:
        raise ValueError(f"{place}: is neither a table of recordings nor a folder.")
    if not pairs:
        kinds = " or ".join(SUFFIXES)
        raise ValueError(f"{place}: must have at least one recording, a {kinds} file.")
    return pairs


def _in_table(table):
    for number, line in enumerate(read_lines(table), start=1):
        cells = line.split("\t")
        if len(cells) != 2:
            raise ValueError(
                f"{table}, line {number}: must be the path of a recording, a tab and its "
                f"transcript. Received: {len(cells)} columns."
            )
        path = table.parent / cells[0]
        if not path.is_file():
            raise ValueError(f"{table}, line {number}: there is no file {path}.")
        yield path, _words(cells[1], f"{table}, line {number}")


def _in_folder(folder):
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES and path.is_file():
            text = path.with_suffix(".txt")
            if not text.is_file():
                raise ValueError(f"{path}: needs its transcript in {text.name} beside it.")
            yield path, _words(" ".join(read_lines(text)), text)


def _words(text, name):
    """Returns a transcript with single spaces."""
    words = text.split()
    if not words:
        raise ValueError(f"{name}: the transcript is empty.")
    return " ".join(words)


def _state_of(pairs):
    """Returns a checksum of paths, sizes and times of files, and of transcripts."""
    states = []
    for path, text in pairs:
        state = os.stat(path)
        states.append([str(path), state.st_size, state.st_mtime_ns, text])
    return hashlib.sha256(json.dumps(states).encode()).hexdigest()
