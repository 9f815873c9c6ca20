"""Options of `keras-transformer export`, and which of them go together."""

import re

import click

from keras_transformer.cli.command import EXISTING_FILE, FiniteRange, refuse

SENTENCES = click.option(
    "--sentences",
    type=EXISTING_FILE,
    help="Sentences to check the export with, one per line. Default: of the run's own data.",
)


class Numbers(click.ParamType):
    """Positive numbers in increasing order, such as 1,4,16."""

    name = "numbers"

    def convert(self, value, param, context):  # noqa: D102
        if isinstance(value, tuple):
            return value
        if not re.fullmatch("[0-9]+(,[0-9]+)*", value):
            self.fail(f"{value!r} is not a list of numbers such as 1,4,16.", param, context)
        numbers = tuple(map(int, value.split(",")))
        if numbers[0] < 1 or list(numbers) != sorted(set(numbers)):
            self.fail(f"{value!r} must be positive and increasing, as 1,4,16 is.", param, context)
        return numbers


def batch_sizes(default):
    """Returns the option `--batch-sizes`, whose help names a default."""
    return click.option(
        "--batch-sizes",
        type=Numbers(),
        metavar="N,N,...",
        help="Numbers of sentences to make a graph of fixed shape for. Other numbers are padded to "
        f"the next of these, or split.  [default: {default}]",
    )


LENGTHS = click.option(
    "--lengths",
    type=Numbers(),
    metavar="N,N,...",
    help="Source lengths in tokens to make a graph of fixed shape for; the last is the longest "
    "there can be. Other lengths are padded to the next of these.  [default: 16,64,... up to the "
    "longest]",
)

LIMITS = [
    click.option(
        "--min-agreement",
        type=FiniteRange(0, 100),
        metavar="PERCENT",
        help="Tokens of a quantised model that must be those of the run, on this processor.  "
        "[default: any; what is limited are its losses]",
    ),
    click.option(
        "--max-loss",
        type=FiniteRange(0),
        default=1.0,
        show_default=True,
        metavar="POINTS",
        help="BLEU, and chrF, or accuracy that a quantised model may lose.",
    ),
    click.option(
        "--max-score-loss",
        type=FiniteRange(0),
        metavar="NATS",
        help="How much less probable, in nats per token by the run's model, the outputs of a "
        "quantised model may be, and how wrong its scores or its log-probabilities of labels.  "
        "[default: 0.01 of float16, 0.1 of int8; of CTranslate2's int8 weights 0.03]",
    ),
    SENTENCES,
    click.option(
        "--references",
        type=EXISTING_FILE,
        help="What belongs to --sentences, line by line, translations or labels, for what a "
        "quantised model loses.",
    ),
]


def check_limits(quantize, sentences, references):
    """Refuses limits of a quantised model that have no effect beside the other options."""
    if references and not sentences:
        raise click.UsageError("--references needs --sentences.")
    if quantize == "none":
        refuse(["min_agreement", "max_loss", "max_score_loss", "references"], "needs --quantize.")
    if sentences and not references:
        refuse(["max_loss"], "needs --references beside --sentences.")


def quantize(format):
    """Returns a decorator for `--quantize` as a `Format` has it, and the limits that go with it.

    `check_limits` refuses those without effect.
    """
    options = [
        click.option(
            "--quantize", type=click.Choice(format.quantizations), default="none", show_default=True
        ),
        *LIMITS,
    ]

    def add(command):
        for option in reversed(options):
            command = option(command)
        return command

    return add
