"""Options of `keras-transformer export`, and the check that they go together."""

import re
from collections.abc import Callable
from typing import Any

import click

from keras_transformer.cli.command import EXISTING_FILE, FiniteRange, max_length, refuse
from keras_transformer.cli.help import add_options, option

CHECK = "Check of the export"
QUANTIZATION = "Quantisation"
QUALITY = "Quality limits of a quantised model"
SENTENCES = option(
    "--sentences",
    type=EXISTING_FILE,
    group=CHECK,
    help="File to check the export with: one sentence per line, or the path of one recording or "
    "image.  [default: up to 200 of the run's test data]",
)

CHECK_TIME = option(
    "--check-seconds",
    type=FiniteRange(0, min_open=True),
    metavar="SECONDS",
    group=CHECK,
    help="Time after which the check calls no further signature of a model that generates text. "
    "The report names what was left out.  [default: 600]",
)


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


def batch_sizes(default) -> Callable[[Any], Any]:
    """Returns the option `--batch-sizes`; its help names the default."""
    return option(
        "--batch-sizes",
        type=Numbers(),
        metavar="N,N,...",
        group="Shapes",
        help="Batch sizes: a graph of fixed shape is built for each. Other batches are padded to "
        f"the next larger size, or split.  [default: {default}]",
    )


LENGTHS = option(
    "--lengths",
    type=Numbers(),
    metavar="N,N,...",
    group="Shapes",
    help="Source lengths, in tokens: a graph of fixed shape is built for each. A shorter source is "
    "padded to the next length; the last length is the maximum.  [default: 16,64,... up to the "
    "maximum]",
)
MAX_LENGTH = max_length(group="Shapes")

LIMITS = [
    SENTENCES,
    option(
        "--references",
        type=EXISTING_FILE,
        group=CHECK,
        help="File of the correct output of each line of --sentences, translations or labels, to "
        "measure the loss of quality.",
    ),
    option(
        "--max-loss",
        type=FiniteRange(0),
        default=1.0,
        metavar="POINTS",
        group=QUALITY,
        help="Maximum loss in BLEU and in chrF, or in accuracy.",
    ),
    option(
        "--max-score-loss",
        type=FiniteRange(0),
        metavar="NATS",
        group=QUALITY,
        help="Maximum loss in log-probability per token, in nats, of the outputs under the run's "
        "model; also the maximum error of scores or of log-probabilities of labels.  "
        "[default: 0.01 for float16, 0.1 for int8, 0.2 for int4, 0.03 for CTranslate2's int8 "
        "weights]",
    ),
    option(
        "--min-agreement",
        type=FiniteRange(0, 100),
        metavar="PERCENT",
        group=QUALITY,
        help="Minimum share of tokens that agree with the run's, on this processor.  "
        "[default: no minimum, as the losses are limited]",
    ),
]


def check_limits(quantize, sentences, references) -> None:
    """Refuses limits of a quantised model that have no effect with the other options."""
    if references and not sentences:
        raise click.UsageError("--references needs --sentences.")
    if quantize == "none":
        refuse(["min_agreement", "max_loss", "max_score_loss", "references"], "needs --quantize.")
    if sentences and not references:
        refuse(["max_loss"], "needs --references beside --sentences.")


def calibration(format, what) -> Callable[[Any], Any]:
    """Returns the option `--calibration` of a `Format`; its help names what is found."""
    return option(
        "--calibration",
        type=EXISTING_FILE,
        group=QUANTIZATION,
        help=f"With {format.calibrated}: file of sentences, one per line, that determine the "
        f"{what} of the activations.  [default: 200 of the run's training data]",
    )


def quantize(format) -> Callable[[Any], Any]:
    """Returns a decorator that adds `--quantize` and the limits that go with it.

    `check_limits` refuses limits that have no effect.

    Args:
        format: The `Format`, which knows its quantisations.
    """
    about = {
        "int8_static": "; int8_static also quantises the activations",
        "int4": "; int4 stores 4 bits for each weight",
    }
    more = "".join(text for name, text in about.items() if name in format.quantizations)
    options = [
        option(
            "--quantize",
            type=click.Choice(format.quantizations),
            default="none",
            group=QUANTIZATION,
            help=f"Number format of the stored weights{more}.",
        ),
        *LIMITS,
    ]
    return lambda command: add_options(command, *options)
