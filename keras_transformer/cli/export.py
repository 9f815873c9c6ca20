"""`keras-transformer export`: a command for each export format, made of its declaration."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from keras_transformer.cli.command import FOLDER, LeanCommand, LeanSubcommands, warn
from keras_transformer.cli.export_options import (
    JSON,
    MAX_LENGTH,
    REFERENCES,
    SENTENCES,
    calibration,
    check_together,
    options_of,
)
from keras_transformer.cli.export_run import export_run
from keras_transformer.cli.help import add_options
from keras_transformer.cli.outputs import OUTPUT, OUTPUT_FILE
from keras_transformer.cli.places import check_suffix
from keras_transformer.cli.search_options import (
    CTC,
    greedy_or_beam,
    option_of,
    sampling,
    search_of_run,
)
from keras_transformer.cli.shortlist import SHORTLIST
from keras_transformer.cli.wording import BANNED, PREFIX
from keras_transformer.export.formats import FORMATS
from keras_transformer.search_settings import settings_of


class FormatCommands(Mapping):
    """The command of each of `FORMATS` by name, made when it is first looked up."""

    def __init__(self):
        self._made: dict[int, tuple[Any, Any]] = {}  # formats and their commands, by identity

    def __getitem__(self, name: str) -> click.Command:
        """Returns the command of a format."""
        format = FORMATS[name]
        if id(format) not in self._made:
            self._made[id(format)] = format, command_of(format)
        return self._made[id(format)][1]

    def __iter__(self) -> Iterator[str]:
        """Yields the names of the formats."""
        return iter(FORMATS)

    def __len__(self) -> int:
        """Returns the number of formats."""
        return len(FORMATS)


@click.group(
    cls=LeanSubcommands,
    commands=FormatCommands(),
    example="keras-transformer export litert runs/base model.tflite",
)
def export() -> None:
    """Export a run to a format that works without this package."""


def command_of(format) -> click.Command:
    """Returns the command that exports a run to a `Format`."""
    place = "file" if format.suffix else "directory"

    def run_command(run, **options):
        path, search = options.pop(place), None
        if _has_search(format):
            search = _held(format, path, search_of_run(run, options))
        check_together(format, options, search)
        if format.suffix:
            check_suffix(path, format.suffix)
        export_run(format, run, path, search, **options)

    arguments = (
        click.argument("run", type=FOLDER),
        click.argument(place, type=OUTPUT_FILE if format.suffix else OUTPUT),
    )
    run_command = add_options(run_command, *arguments, *_options(format))
    text = f"{format.help}\n\nFolders in {place.upper()} that do not exist are created."
    make = click.command(format.name, LeanCommand, help=text, example=format.example)
    return make(run_command)


def _held(format, path, search):
    """Returns a search that a format can hold: greedy search in place of sampling, or the same."""
    from keras_transformer.decoding import Greedy, Sample

    if not isinstance(search, Sample) or format.samples:
        return search
    warn(f"{path} cannot store the run's own search, {search}; it uses greedy search.")
    return Greedy.like(search)


def _has_search(format):
    return "search" in settings_of(format.options)


def _options(format):
    """Yields the options of the command of a format, in the order of its page."""
    if _has_search(format):
        beams = format.beams
        if beams.help is not None:
            yield option_of("beam", beams.help, beams.default_help)
        yield greedy_or_beam(*["beam"] * (beams.help is not None), *beams.fixed)
        yield CTC
        if format.samples:
            yield sampling
    if "shortlist" in format.of_pipeline:
        yield SHORTLIST
    if "banned" in format.of_pipeline:
        yield BANNED
        yield PREFIX
    yield options_of(format)
    if "max_length" in format.of_pipeline:
        yield MAX_LENGTH
    if format.calibrated:
        yield calibration(format)
    yield SENTENCES
    if format.quantizations:
        yield REFERENCES
    yield JSON
