"""`keras-transformer shortlist`: for each source piece of a run the target pieces it becomes."""

import contextlib

import click
import rich.console
import rich.progress

from keras_transformer.cli.command import EXISTING_FILE, FILE, FOLDER, Command, batch_size
from keras_transformer.cli.places import check_output

LIMIT = 100_000
SHORTLIST = click.option(
    "--shortlist",
    type=EXISTING_FILE,
    help="Search among the candidates of each sentence alone, by a file that the command shortlist "
    "or Marian has written.",
)


def with_shortlist(pipeline, file, run):
    """Returns what a run's model is used by, with the shortlist of a file, or `None`, as it is.

    Raises:
        click.UsageError: If it has no such searches.
        ValueError: If the file is damaged, or another vocabulary's.
    """
    if file is None:
        return pipeline
    if not hasattr(pipeline, "with_shortlist"):
        refuse_of_task(run, pipeline.task)
    from keras_transformer.text.shortlist import Shortlist

    try:
        return pipeline.with_shortlist(Shortlist.read(file))
    except ValueError as error:
        text = str(error)
        raise ValueError(text if str(file) in text else f"{file}: {text}") from error


def refuse_of_task(run, task):
    """Raises for a run of a task in which nothing is searched for a source."""
    raise click.UsageError(
        f"{run} is a run for {task}: a shortlist goes with a model that has an encoder and a "
        "decoder."
    )


@click.command(cls=Command)
@click.argument("run", type=FOLDER)
@click.argument("file", type=FILE)
@click.option(
    "--first",
    default=50,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Pieces at the beginning of the vocabulary that every translation may be made of.",
)
@click.option(
    "--best",
    default=50,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Most pieces that a piece of the source brings with it.",
)
@click.option("--source", type=EXISTING_FILE, help="Sentences to learn from, one per line.")
@click.option("--target", type=EXISTING_FILE, help="Their translations, line by line.")
@click.option(
    "--limit",
    default=LIMIT,
    show_default=True,
    type=click.IntRange(1),
    metavar="PAIRS",
    help="Of more pairs than that so many are read, at equal distances.",
)
@batch_size()
def shortlist(run, file, first, best, source, target, limit, batch_size):
    """Write a shortlist of RUN to FILE, in Marian's binary format.

    The model of RUN reads pairs of its training data, or of the files; a piece of a translation is
    shared among the three pieces of the source that it attends to most, in the decoder's last
    layer. What a piece of the source has most of is its list. translate and the exports
    saved-model, litert and marian take the file with --shortlist: they then compute the logits of
    the candidates of each sentence alone.
    """
    if (source is None) != (target is None):
        raise click.UsageError("--source and --target go together.")
    from keras_transformer.tasks import open_run
    from keras_transformer.tasks.conditional_generator import ConditionalGenerator
    from keras_transformer.tasks.run import Run
    from keras_transformer.tasks.shortlists import learn_shortlist

    check_output(file)
    Run(run).require_finished(vocabulary=False)
    pairs = _of_run(run, limit) if source is None else _of_files(source, target, limit)
    pipeline = open_run(run)
    if not isinstance(pipeline, ConditionalGenerator):
        refuse_of_task(run, pipeline.task)
    with _bar(len(pairs[0])) as progress:
        learned = learn_shortlist(
            pipeline, *pairs, first, best, batch_size=batch_size, progress=progress
        )
    learned.write(file)
    lengths = len(learned.ids) / learned.vocab_size
    click.echo(
        f"{file}: {len(pairs[0]):,} pairs; {lengths:.1f} ids in the list of a piece on average, "
        f"beside the first {first}."
    )


def _of_files(source, target, limit):
    """Two lists of strings, at most `limit` of each, at equal distances."""
    from keras_transformer.text.lines import read_parallel

    both = read_parallel(source, target)
    if not both[0]:
        raise ValueError(f"{source} has no line to learn from.")
    stride = -(-len(both[0]) // limit)
    return [lines[::stride] for lines in both]


def _of_run(run, limit):
    """The same of the training data of a run."""
    from keras_transformer.tasks.run import Run
    from keras_transformer.training.data.sources import open_source
    from keras_transformer.training.settings.toml import load_settings

    settings = load_settings(Run(run).config)
    task = settings.task.get()
    if not task.has_two_sides:
        refuse_of_task(run, task.name)
    data = open_source(settings.data, task.columns)
    rows, count = data.rows("train"), data.count("train")
    if count is not None:
        rows = rows.shard(-(-count // limit), 0)
    columns = zip(*rows.take(limit).as_numpy_iterator(), strict=True)
    return [[text.decode() for text in column] for column in columns]


@contextlib.contextmanager
def _bar(total):
    """Shows how many pairs have been read, on stderr, where somebody watches."""
    console = rich.console.Console(stderr=True)
    if not console.is_terminal:
        console.print(f"reading {total:,} pairs ...", soft_wrap=True, markup=False)
        yield None
        return
    columns = [
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeRemainingColumn(),
    ]
    with rich.progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading pairs", total=total)
        yield lambda done: bar.update(task, completed=done)
