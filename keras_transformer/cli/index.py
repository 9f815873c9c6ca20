"""`keras-transformer index` and `search`: texts that are found by vectors of a model."""

import pathlib
import sys
from typing import Any

import click

from keras_transformer.cli.command import (
    EXISTING_FILE,
    FOLDER,
    LateCommand,
    batch_size,
    refuse,
    standard,
)
from keras_transformer.cli.help import count, option
from keras_transformer.cli.outputs import OUTPUT
from keras_transformer.cli.places import check_folder
from keras_transformer.native_code import ends_promptly
from keras_transformer.options import OptionError
from keras_transformer.text.lines import binary_lines, decode_line

MODEL = click.Path(path_type=pathlib.Path, exists=True)
PROMPT = "Name of the prompt in front of each {}, or an empty string for none.  [default: that of "
PROMPT += "the model, mostly none]"


@click.command(
    cls=LateCommand,
    example="keras-transformer index runs/minilm --input texts.txt --output texts.index",
)
@click.argument("model", type=MODEL)
@option(
    "--input",
    "source",
    type=EXISTING_FILE,
    required=True,
    group="Input and output",
    help="File of the texts, one per line; empty lines are left out.",
)
@option(
    "--output",
    "folder",
    type=OUTPUT,
    required=True,
    group="Input and output",
    help="Folder of the index.",
)
@option(
    "--append",
    is_flag=True,
    group="Input and output",
    help="Add the texts to the index that the folder contains. This index must be finished, and "
    "must have been made with the same model.",
)
@option("--prompt", metavar="NAME", group="Vectors", help=PROMPT.format("text"))
@option(
    "--dtype",
    type=click.Choice(["float32", "float16"]),
    group="Vectors on disk",
    help="Type of the numbers on disk. float16 takes half the space of float32.  [default: "
    "float32]",
)
@option(
    "--similarity",
    type=click.Choice(["dot", "cosine"]),
    group="Vectors on disk",
    help="Score of two vectors. If the model normalises its vectors, the dot product is the "
    "cosine.  [default: dot]",
)
@option(
    "--approximate",
    is_flag=True,
    default=None,
    group="Vectors on disk",
    help="Also write a graph of near vectors (HNSW) with usearch, for a faster, approximate "
    "search in large indexes.",
)
@batch_size("Number of texts to embed at a time.", group=None)
def index(model, source, folder, append, prompt, batch_size, **options):
    """Index the lines of a file, so that `search` can search them.

    MODEL is a run or an export. Its task determines what the index stores: dense vectors
    (embedding), postings of sparse vectors (sparse embedding), or a vector for each token (late
    interaction). If the command is interrupted, run it again to continue. Searches are exact,
    unless the index has a graph.
    """
    from keras_transformer.retrieval.index import TextIndex
    from keras_transformer.retrieval.kinds import kind_of

    check_folder(folder)
    options = {name: value for name, value in options.items() if value is not None}
    with ends_promptly():
        answering = _opened(model, prompt)
        try:
            kind_of(answering).settings(**options)
        except OptionError as error:
            raise click.UsageError(f"--{error.name} {error.reason}") from error
        built = TextIndex.build(
            answering,
            _lines(source),
            folder,
            append,
            batch_size,
            _Counted(),
            model=str(model.resolve()),
            prompt=prompt,
            **options,
        )
    click.echo(f"{folder}: {len(built):,} texts, {built.described}.")


class _Counted:
    """Progress on stderr, if it is a terminal."""

    def __init__(self):
        self.count = 0

    def __call__(self, count):
        self.count += count
        if sys.stderr.isatty():
            click.echo(f"\r{self.count:,} lines", err=True, nl=False)


@click.command(
    cls=LateCommand, example='keras-transformer search texts.index "a text editor" --top 5'
)
@click.argument("folder", type=FOLDER, metavar="INDEX")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@option(
    "--input",
    "source",
    type=EXISTING_FILE,
    group="Input and output",
    help="File of queries, one per line, instead of QUERY; empty lines are left out.",
)
@option(
    "--model",
    type=MODEL,
    group="Vectors",
    help="Run or export that embeds the queries. It must be the model that built the index, or "
    "an export of this model.  [default: the path from which the index was built]",
)
@option("--prompt", metavar="NAME", group="Vectors", help=PROMPT.format("query"))
@count("--top", 10, "Maximum number of texts for each query.", group="Input and output")
@option(
    "--exact",
    is_flag=True,
    group="Vectors",
    help="Compare each query with all vectors, although the index has a graph.",
)
@batch_size("Number of queries to embed at a time.", group=None)
def search(folder, queries, source, model, prompt, top, exact, batch_size) -> None:
    """Write the texts of INDEX that are most similar to each QUERY.

    Writes a line for each text: the number of the query (the first is 1), the score, the line
    number of the text, and the text, separated by tabs. An empty query returns no texts. An index
    of sparse vectors finds only texts that share a token with QUERY, so it may find none.
    """
    from keras_transformer.retrieval.index import TextIndex

    if bool(queries) == (source is not None):
        raise click.UsageError("Give either QUERY or --input.")
    stated = TextIndex(folder)
    if exact and not stated.has_graph:
        refuse(["exact"], f"has no effect on {folder}, which has no graph: it is always exact.")
    if any(not query.strip() for query in queries):
        raise click.UsageError("QUERY must not be empty.")
    lines = queries if source is None else _lines(source)
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    model = model or _model_of(stated)
    output: Any = standard("stdout")
    with ends_promptly():
        found = TextIndex(folder, _opened(model, prompt))
        for first in range(0, len(numbered), batch_size):
            numbers, block = zip(*numbered[first : first + batch_size], strict=True)
            answers = found.search(block, top, exact, batch_size)
            for number, hits in zip(numbers, answers, strict=True):
                for hit in hits:
                    line = f"{number}\t{hit.score:.6f}\t{hit.line}\t{hit.text}\n"
                    output.write(line.encode())
            output.flush()


def _model_of(index):
    """Returns the path of the model that built an index."""
    path = index.store.manifest.get("model")
    if path is None:  # a program has built it
        raise click.UsageError(f"{index.store.folder} does not name its model: use --model.")
    if not pathlib.Path(path).exists():
        raise click.UsageError(f"{path}, which built the index, is missing: name it by --model.")
    return pathlib.Path(path)


def _opened(model, prompt):
    """Returns a model with an index of its own kind, with a prompt."""
    import keras_transformer
    from keras_transformer.retrieval.kinds import kind_of

    answering = keras_transformer.open(model)
    kind_of(answering)
    return answering if prompt is None else answering.with_settings(prompt=prompt)


def _lines(path):
    """Yields the lines of a file as strings."""
    for number, line in enumerate(binary_lines(path), start=1):
        yield decode_line(path, number, line)
