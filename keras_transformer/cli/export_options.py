"""Options of `keras-transformer export`, and the check that they go together."""

import re
from collections.abc import Callable
from typing import Any

import click

from keras_transformer.cli.command import EXISTING_FILE, max_length, refuse
from keras_transformer.cli.help import add_options, option
from keras_transformer.cli.search_options import parameter_type
from keras_transformer.export.options import BEAM, CHECK, QUANTIZATION
from keras_transformer.search_settings import BeamSettings, settings_of

SENTENCES = option(
    "--sentences",
    type=EXISTING_FILE,
    group=CHECK,
    argument="samples",
    help="File with inputs for the check. Each line is a sentence, or the path of a recording "
    "or an image.  [default: up to 200 of the run's test data]",
)
REFERENCES = option(
    "--references",
    type=EXISTING_FILE,
    group=CHECK,
    help="File with the correct output for each line of --sentences, a translation or a label, to "
    "measure the loss of quality.",
)
JSON = option(
    "--json",
    "as_json",
    is_flag=True,
    group=CHECK,
    help="Print the whole report as JSON, instead of one line with size, agreement and time. The "
    "report is also stored in RUN/exports.",
)
MAX_LENGTH = max_length(group="Shapes")


class Numbers(click.ParamType):
    """A parameter that is a list of positive numbers in increasing order, such as 1,4,16."""

    name = "numbers"

    def convert(self, value, param, ctx) -> tuple[int, ...]:  # noqa: D102
        if isinstance(value, tuple):
            return value
        if not re.fullmatch("[0-9]+(,[0-9]+)*", value):
            self.fail(f"{value!r} is not a list of numbers such as 1,4,16.", param, ctx)
        numbers = tuple(map(int, value.split(",")))
        if numbers[0] < 1 or list(numbers) != sorted(set(numbers)):
            self.fail(f"{value!r} must be positive and increasing, as 1,4,16 is.", param, ctx)
        return numbers


def options_of(format) -> Callable[[Any], Any]:
    """Returns a decorator that adds the options of a `Format`, derived from their declarations."""
    options = [
        _option(name, setting, format.options)
        for name, setting in settings_of(format.options).items()
        if setting.group is not None
    ]
    return lambda command: add_options(command, *options)


def _option(name, setting, options):
    """Returns the option of a field of a format's class of options."""
    default, default_help = getattr(options, name), setting.default_help
    words = f"--{name.replace('_', '-')}"
    if setting.kind in (None, bool):
        return option(words, is_flag=True, group=setting.group, help=setting.help)
    default_help = default_help(options) if callable(default_help) else default_help
    shown = f"  [default: {default_help}]" if default_help else ""
    return option(
        words,
        type=Numbers() if setting.kind is tuple else parameter_type(setting, default),
        default=None if shown else default,
        metavar=setting.metavar,
        group=setting.group,
        help=f"{setting.help}{shown}",
    )


def values_of(format, options) -> dict[str, Any]:
    """Returns the values of a format's options that the command line sets, by name.

    Args:
        format: The `Format`.
        options: Values of the options of the command by name. Those of the format are removed.
    """
    values = {}
    for name, setting in settings_of(format.options).items():
        value = options.pop(name, None)
        if value is None or value is False:
            continue
        if setting.given is not None:
            value = setting.given
        values[name] = value / 100 if setting.is_percentage else value
    return values


def check_together(format, options, search) -> None:
    """Refuses options of a format that have no effect with the others.

    Args:
        format: The `Format`.
        options: Values of the options of the command by name.
        search: The search of the export, or `None`.
    """
    for name, setting in settings_of(format.options).items():
        if setting.requires and not _is_given(format, options, setting.requires):
            refuse([name], f"needs --{setting.requires.replace('_', '-')}.")
        if setting.excludes and _is_given(format, options, setting.excludes):
            refuse([name], f"has no effect with --{setting.excludes.replace('_', '-')}.")
        if setting.needs == BEAM and not isinstance(search, BeamSettings):
            refuse([name], "needs --beam.")
    if options.get("takes_words"):
        refuse(["banned", "prefix"], "has no effect with --takes-words.")
    quantize, sentences = options.get("quantize"), options["sentences"]
    if options.get("calibration") and quantize != format.calibrated:
        raise click.UsageError(f"--calibration needs --quantize {format.calibrated}.")
    if options.get("references") and not sentences:
        raise click.UsageError("--references needs --sentences.")
    if quantize == "none":
        refuse(["references"], "needs --quantize.")
    if sentences and not options.get("references"):
        refuse(["max_loss"], "needs --references beside --sentences.")


def _is_given(format, options, name):
    value = options[name]  # `False` of a flag, even if the field has another default
    return value is not False and value not in (None, getattr(format.options, name))


def calibration(format) -> Callable[[Any], Any]:
    """Returns the option `--calibration` of a `Format`."""
    return option(
        "--calibration",
        type=EXISTING_FILE,
        group=QUANTIZATION,
        help=f"With {format.calibrated}: file of sentences, one per line, that determine the "
        "ranges of the activations.  [default: 200 of the run's training data]",
    )
