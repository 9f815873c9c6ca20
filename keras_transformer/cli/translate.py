"""`keras-transformer translate`: its options, and what each kind of model can be asked."""

import contextlib

import click

from keras_transformer.cli.command import (
    BEAM,
    EXISTING_FILE,
    FILE,
    FOLDER,
    LENGTH_PENALTY,
    Command,
    FiniteRange,
    refuse,
    standard,
    warn,
)
from keras_transformer.cli.open_model import BEAM_ONLY, BEAMS, SAMPLE_ONLY, Asked, open_search
from keras_transformer.cli.places import check_output
from keras_transformer.files import replacing


@click.command(cls=Command)
@click.argument("model", type=FOLDER)
@click.option("--input", "source", type=EXISTING_FILE, help="Lines to translate. Default: stdin.")
@click.option(
    "--output",
    "target",
    type=FILE,
    help="File to write when all lines are translated. Default: stdout.",
)
@click.option("--batch-size", default=64, show_default=True, type=click.IntRange(1))
@BEAM
@LENGTH_PENALTY
@click.option(
    "--normalization",
    type=click.Choice(["gnmt", "average", "none"]),
    help="With --beam: divide scores by the penalty of --length-penalty, by the length, or by "
    "nothing.  [default: gnmt]",
)
@click.option(
    "--min-length",
    type=click.IntRange(1),
    metavar="TOKENS",
    help="With --beam: shortest output, the end of the sentence included.  [default: 1]",
)
@click.option(
    "--extra-length",
    type=click.IntRange(0),
    metavar="TOKENS",
    help="With --beam: how much longer than its source an output may be.  [default: 50]",
)
@click.option(
    "--max-length",
    type=click.IntRange(1),
    metavar="TOKENS",
    help="Longest source and longest output, their ends included.  [default: the model's]",
)
@click.option(
    "--n-best",
    type=click.IntRange(1),
    metavar="M",
    help="Write the best M translations of each line: number of the line, from 1, tab, score, tab, "
    "text; the best first, fewer where there are fewer. Without --beam, with one of 4, or of M.",
)
@click.option("--sample", is_flag=True, help="Draw translations at random.")
@click.option(
    "--temperature",
    type=FiniteRange(0),
    default=1.0,
    help="With --sample: below 1 nearer to the most probable tokens; 0 is greedy.  [default: 1]",
)
@click.option(
    "--top-k",
    type=click.IntRange(0),
    default=0,
    metavar="K",
    help="With --sample: draw from the K most probable tokens; 0: from all.  [default: 0]",
)
@click.option(
    "--top-p",
    type=FiniteRange(0, 1),
    default=1.0,
    metavar="P",
    help="With --sample: draw from the most probable tokens that have together the probability P.  "
    "[default: 1]",
)
@click.option(
    "--seed",
    type=click.IntRange(-(2**31), 2**31 - 1),
    default=0,
    help="With --sample: the same seed gives the same line the same translation.  [default: 0]",
)
@click.option(
    "--scores",
    is_flag=True,
    help="Write the score of each translation before it, and a tab: the natural logarithm of its "
    "probability, divided by the penalty if there is a beam; 0 for an empty line.",
)
@click.option(
    "--alignments",
    is_flag=True,
    help="Write after each translation a tab and pairs i-j: word j of the translation attended "
    "most to word i of the source. Words are counted from 0 and separated by spaces.",
)
def translate(model, source, target, batch_size, **options):
    """Translate lines: one line out per line in, in order.

    MODEL is a run, a SavedModel, a .tflite file or a folder for CTranslate2. A run can be asked
    everything; the others what their export put into them.
    """
    from keras_transformer.cli.line_searches import Format
    from keras_transformer.cli.streaming import translate_stream

    _check(options)
    form = Format(
        numbers=options["n_best"] is not None,
        scores=options["scores"] or options["n_best"] is not None,
        alignments=options["alignments"],
    )
    if target is not None:
        check_output(target)
        if not target.parent.is_dir():
            raise ValueError(f"{target.parent} does not exist: make it first.")
    with _lines(source) as lines, _output(target) as output:
        window = 1 if lines.isatty() else 2048
        search = open_search(model, Asked(**options), batch_size)
        translate_stream(
            search, lines, output, warn, batch_size=batch_size, window=window, form=form
        )


def _check(options):
    """Refuses options that have no effect beside the others."""
    if options["sample"]:
        refuse((*BEAMS, "n_best"), "has no effect with --sample.")
    else:
        refuse(SAMPLE_ONLY, "needs --sample.")
    if options["alignments"]:
        refuse(
            (*BEAMS, "n_best", "sample"),
            "has no effect with --alignments, which goes with greedy search.",
        )
    if options["beam"] is None and options["n_best"] is None:
        refuse(("length_penalty", *BEAM_ONLY), "needs --beam.")
    if options["normalization"] in ("average", "none"):
        refuse(
            ["length_penalty"], f"has no effect with --normalization {options['normalization']}."
        )
    if options["beam"] is not None and (options["n_best"] or 0) > options["beam"]:
        raise click.UsageError(
            f"--n-best {options['n_best']} needs a beam of as many hypotheses. "
            f"Received: --beam {options['beam']}."
        )
    if options["n_best"] is not None:
        refuse(["scores"], "has no effect with --n-best, which writes them.")


@contextlib.contextmanager
def _lines(path):
    if path is None:
        yield standard("stdin")
    else:
        with open(path, "rb") as file:
            yield file


@contextlib.contextmanager
def _output(path):
    """A binary stream to stdout, or to a file that appears when everything is written."""
    if path is None:
        yield standard("stdout")
    else:
        with replacing(path) as draft, open(draft, "wb") as file:
            yield file
