"""Options of `predict` that an export cannot follow: what it was written with, or what it lacks."""

from typing import Any

import click

from keras_transformer.cli.command import given
from keras_transformer.cli.search_options import SEARCHES
from keras_transformer.options import LANGUAGES, NOT_EXPORTED

# See `Silence`.
SILENCE = ("no_speech_threshold", "log_probability_threshold", "compression_ratio_threshold")
ATTEMPTS = (
    "windows",
    "temperatures",
    "words",
    "voice_activity",
)  # how a recognizer reads recordings
WORDS = ("glossary", "banned", "prefix", "prefixes")
WORDING = (*WORDS, "token_scores")
# Settings of answers, see `Answering.with_settings`.
ANSWERS = (
    "no_answer", "dimensions", "max_active", "prompt", "timestamps", "spans", "hops", "threshold",
    "probabilities", *SILENCE, *ATTEMPTS, *WORDING,
)  # fmt: skip
TIMES = ("timestamps", "subtitles")  # options that need timestamps
# Options that a run supports, depending on its task.
ALL = {*SEARCHES, "max_length", "alignments", "shortlist", *LANGUAGES, *ANSWERS, *TIMES}
OF_SPEECH = {*TIMES, *SILENCE, *ATTEMPTS}
OF_GENERATION = {*SEARCHES, *LANGUAGES, "alignments", "shortlist"}


def refuse_fixed(taken, path, command, kind, written=None) -> None:
    """Refuses options that an export does not take.

    Args:
        taken: Names of the options that it takes.
        path: Path of the export.
        command: Name of the command that wrote it, such as `"litert"`.
        kind: Class of its pipeline; `None`: unknown.
        written: The `Beam` that it was written with, or `None`.

    Raises:
        click.UsageError: If the command line sets another option. The message says what the export
            was written with, or which option or model would have an effect.
    """
    name = given(*sorted(ALL - {*taken}))
    if name is None:
        return
    option = f"--{name.replace('_', '-')}"
    task = getattr(kind, "task", None)
    if kind is not None and (command == "ctranslate2" or not _fits(name, kind)):
        reason = f"has no effect on {path}, a model for {task}."
    elif name in WORDS and "takes_words" in _written_by(command):
        reason = (
            f"needs an export that takes words: {path}. Export the run again with --takes-words."
        )
    elif name == "token_scores" and name in _written_by(command):
        reason = f"needs an export that returns them: {path}. Export the run again with {option}."
    elif name in _written_by(command):
        settings = "its own search" if written is None else str(written)
        settings = "its own maximum length" if name == "max_length" else settings
        reason = (
            f"has no effect on {path}: the export was written with {settings}. Export the run "
            f"again with {option}."
        )
    elif name in NOT_EXPORTED:
        reason = f"has no effect on {path}: {NOT_EXPORTED[name]}. Open the run."
    elif name in {*ANSWERS, *TIMES}:
        reason = f"has no effect on {path}: an export has its run's settings. Open the run."
    elif command == "ctranslate2":
        reason = (
            f"has no effect on {path}: a folder for CTranslate2 has no such option. Open the run."
        )
    else:
        reason = f"has no effect on {path}: the export has no such option. Open the run."
    raise click.UsageError(f"{option} {reason}")


def _fits(name, kind):
    """Returns whether a run of a kind of pipeline takes an option."""
    from keras_transformer.tasks.answering import Answering

    if name in OF_GENERATION:
        return kind.search is not None
    if name in WORDING:
        return kind.has_source
    settings = kind.settings
    if settings is Answering.settings:
        settings = ()
    elif isinstance(settings, property):  # they depend on the model
        return name in OF_SPEECH
    if name in TIMES:
        return "timestamps" in settings
    return name not in ANSWERS or name in settings


def _written_by(command) -> set[Any]:
    """Returns the names of the options of `export COMMAND`."""
    from keras_transformer.cli.export import export

    return {parameter.name for parameter in export.commands[command].params}
