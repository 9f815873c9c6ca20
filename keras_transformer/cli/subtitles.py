"""`predict --subtitles`: a file of subtitles for each recording."""

import os
import pathlib
from typing import Any, BinaryIO

import click

from keras_transformer.files import replacing
from keras_transformer.opening.stream import outcomes
from keras_transformer.tasks.speech_recognition.subtitles import FORMATS
from keras_transformer.text.lines import without_end, without_mark


def write_subtitles(
    search: Any,
    source: BinaryIO,
    place: pathlib.Path | None,
    output: BinaryIO,
    warn: Any,
    suffix: str,
    *,
    batch_size: int = 64,
    bounds: tuple[int, int] | None = None,
    strict: bool = False,
    words: bool = False,
) -> None:
    """Writes the subtitles of recordings, each file as soon as its batch is transcribed.

    A recording that cannot be read has no file: one of an earlier run is removed, because it would
    look like a result of this one.

    Args:
        search, warn, batch_size, bounds, strict: See `stream.outcomes`.
        source: Binary stream of lines with the paths of recordings.
        place: A folder, which gets a file for each recording; or the file of a single recording.
            `None`: `output` gets the subtitles of a single recording.
        output: Binary stream.
        suffix: One of `FORMATS`, without a dot.
        words: Whether each word has a subtitle of its own, instead of each segment.

    Raises:
        click.UsageError: If several recordings need a folder, or have the same name.
        ValueError: See `stream.outcomes`.
    """
    lines = [*without_mark(source)]
    paths = _paths(lines, bounds or (0, len(lines)), place, suffix)
    how = {"batch_size": batch_size, "window": batch_size, "bounds": bounds, "strict": strict}
    for number, outcome in outcomes(search, lines, warn, fate="without subtitles", **how):
        path = paths[number - 1]
        if outcome is None:
            if path is not None and path.is_file():
                path.unlink()
                warn(f"line {number}: removed {path}, which an earlier run wrote")
            continue
        parts = outcome[0].words if words else outcome[0].segments
        content = FORMATS[suffix](parts).encode()
        if path is None:
            output.write(content)
            output.flush()
            continue
        with replacing(path) as draft:
            draft.write_bytes(content)


def _paths(lines, bounds, place, suffix):
    """Returns the path of the file for each line, which is `None` for stdout and empty lines.

    Also the lines outside of `bounds` must have other names: further calls write their files into
    the same folder.
    """
    begin, end = bounds
    texts = [os.fsdecode(without_end(line)).strip() for line in lines]
    if place is None or not place.is_dir():
        count = sum(map(bool, texts[begin:end]))
        if count > 1:
            raise click.UsageError(
                f"--subtitles {suffix} of {count} recordings needs --output with a folder that "
                "exists: each recording has a file of its own there."
            )
        return [place if text else None for text in texts]
    paths = [place / f"{pathlib.Path(text).stem}.{suffix}" if text else None for text in texts]
    known = {}
    for line, path in enumerate(paths, start=1):
        if path and known.setdefault(path, line) != line:
            raise click.UsageError(
                f"{path} would have the subtitles of two recordings, of lines {known[path]} and "
                f"{line}: rename one of them, or call the command twice."
            )
    return paths
