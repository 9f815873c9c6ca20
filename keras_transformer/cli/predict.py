"""`keras-transformer predict`, also called `translate`: lines in, answers out."""

import contextlib

import click

from keras_transformer.cli.command import (
    EXISTING_FILE,
    FILE,
    FOLDER,
    MAX_LENGTH,
    STRICT,
    Command,
    batch_size,
    refuse,
    shard,
    standard,
    warn,
)
from keras_transformer.cli.open_model import open_search
from keras_transformer.cli.places import check_output
from keras_transformer.cli.search_options import BEAMS, make_search, search_options
from keras_transformer.cli.shortlist import SHORTLIST
from keras_transformer.files import replacing


@click.command(cls=Command)
@click.argument("models", type=FOLDER, nargs=-1, required=True, metavar="MODEL...")
@click.option("--input", "source", type=EXISTING_FILE, help="Lines to answer. Default: stdin.")
@click.option(
    "--output",
    "target",
    type=FILE,
    help="File to write when all lines are answered. Default: stdout.",
)
@batch_size()
@search_options
@MAX_LENGTH
@SHORTLIST
@click.option(
    "--scores",
    is_flag=True,
    help="Write the score of each answer before it, and a tab: the natural logarithm of its "
    "probability, divided by the penalty if there is a beam; 0 for an empty line.",
)
@click.option(
    "--alignments",
    is_flag=True,
    help="Write after each translation a tab and pairs i-j: word j of the translation attended "
    "most to word i of the source. Words are counted from 0 and separated by spaces.",
)
@shard(
    "Answer part I of N of the lines of --input, I from 0 to N - 1: the outputs of all parts, one "
    "after the other, are the output for the whole file."
)
@STRICT
def predict(
    models,
    source,
    target,
    batch_size,
    max_length,
    shortlist,
    n_best,
    scores,
    alignments,
    shard,
    strict,
    **options,
):
    """Answer lines: one line out per line in, in order.

    A line becomes its translation, its summary, its label, or a text that goes on from it, as the
    task of MODEL is: a run, a SavedModel, a .tflite file or a folder for CTranslate2. A run takes
    all options of its task; the others take what their export put into them.

    Several runs answer together: with the mean of their probabilities, or of the values that they
    predict.

    A bad line, such as one that is not UTF-8 or that names an image that cannot be read, has an
    empty answer, and a warning names it. In a time series it is an error, since later answers
    depend on it, and the block of 2,048 lines that it is in has no answers.
    """
    from keras_transformer.cli.line_searches import Format
    from keras_transformer.cli.streaming import answer_stream

    if alignments:
        refuse(
            (*BEAMS, "n_best", "sample"),
            "has no effect with --alignments, which goes with greedy search.",
        )
    if n_best is not None:
        refuse(["scores"], "has no effect with --n-best, which writes them.")
    wanted = make_search(n_best=n_best, **options)
    form = Format(
        numbers=n_best is not None, scores=scores or n_best is not None, alignments=alignments
    )
    if shard is not None and source is None:
        raise click.UsageError("--shard needs --input: the lines of a file can be counted.")
    if target is not None:
        check_output(target)
        if not target.parent.is_dir():
            raise ValueError(f"{target.parent} does not exist: make it first.")
    with _lines(source) as lines, _output(target) as output:
        window = 1 if lines.isatty() else 2048
        search = open_search(
            list(models), wanted, n_best, max_length, alignments, batch_size, shortlist
        )
        answer_stream(
            search,
            lines,
            output,
            warn,
            batch_size=batch_size,
            window=window,
            form=form,
            strict=strict,
            bounds=None if shard is None else shard.bounds(_count(source)),
        )


def _count(path):
    """The number of lines of a file."""
    with open(path, "rb") as file:
        return sum(1 for _ in file)


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
