"""`keras-transformer neighbors`: lines are classified by the labels of similar examples."""

import pathlib

import click

from keras_transformer.cli.command import (
    EXISTING_FILE,
    FOLDER,
    STRICT,
    Command,
    batch_size,
    standard,
    warn,
)
from keras_transformer.cli.help import count, option
from keras_transformer.cli.numbers import LimitedNumber
from keras_transformer.native_code import ends_promptly
from keras_transformer.text.lines import read_lines

EXAMPLE = 'echo "rose.png" | keras-transformer neighbors runs/dinov2 examples'


@click.command(cls=Command, example=EXAMPLE)
@click.argument("model", type=FOLDER)
@click.argument("examples", type=click.Path(path_type=pathlib.Path, exists=True))
@option(
    "--input",
    "source",
    type=EXISTING_FILE,
    group="Input and output",
    help="File of lines to classify.  [default: stdin]",
)
@option(
    "--scores",
    is_flag=True,
    group="Input and output",
    help="Before each label, write the natural logarithm of its share of the votes, and a tab.",
)
@count("--neighbors", 20, "Number of examples that vote.", group="Votes")
@option(
    "--temperature",
    type=LimitedNumber(float, above=0),
    default=0.07,
    show_default=True,
    group="Votes",
    help="Divisor of cosines: an example votes with the weight exp(cosine / temperature).",
)
@STRICT
@batch_size()
def neighbors(model, examples, source, scores, neighbors, temperature, strict, batch_size) -> None:
    """Classify each input line by the labels of the most similar examples.

    MODEL is a run or an export that computes vectors of images or of texts. For images, EXAMPLES is
    a folder that contains a folder of images for each label, and input lines are paths. For texts,
    EXAMPLES is a file in which each line has a text, a tab and the label. Nothing is trained.
    """
    from keras_transformer.opening.lines import LineFormat
    from keras_transformer.opening.neighbors import NeighborLines
    from keras_transformer.opening.stream import answer_stream

    with ends_promptly():
        search = NeighborLines.opened(model, neighbors, temperature)
        reads_files = search.answering.codec.suffixes
        inputs, labels = _in_folder(examples, reads_files) if reads_files else _in_file(examples)
        search = search.taught(inputs, labels, batch_size)
        lines = standard("stdin") if source is None else source.open("rb")
        with lines:
            window = 1 if lines.isatty() else 2048
            form = LineFormat(scores=scores)
            how = {"batch_size": batch_size, "strict": strict, "window": window, "form": form}
            answer_stream(search, lines, standard("stdout"), warn, **how)


def _in_folder(folder, suffixes):
    """Returns the paths of the files in the folders of labels, and their labels."""
    if not folder.is_dir():
        raise click.UsageError(
            f"{folder} is not a folder: it must contain a folder of images for each label."
        )
    paths = [path for path in sorted(folder.glob("*/*")) if path.suffix.lower() in suffixes]
    if not paths:
        kinds = ", ".join(suffixes)
        raise ValueError(f"{folder}: must contain a folder for each label, with {kinds} files.")
    return [str(path) for path in paths], [path.parent.name for path in paths]


def _in_file(path):
    """Returns the texts and the labels of the lines of a file."""
    if path.is_dir():
        raise click.UsageError(
            f"{path} is a folder: MODEL reads texts, whose examples are lines of a file, each with "
            "a text, a tab and a label."
        )
    rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2 or not all(field.strip() for field in row):
            raise ValueError(
                f"{path}, line {number}: must have a text, a tab and a label. "
                f"Received: {len(row)} columns."
            )
    if not rows:
        raise ValueError(f"{path}: must have at least one line with a text, a tab and a label.")
    return [row[0] for row in rows], [row[1].strip() for row in rows]
