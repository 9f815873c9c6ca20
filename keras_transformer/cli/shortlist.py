"""`keras-transformer shortlist`: likely target tokens for each source token of a run."""

import contextlib
from typing import Any

import click

from keras_transformer.cli.command import EXISTING_FILE, FOLDER, Command, batch_size
from keras_transformer.cli.help import count, option
from keras_transformer.cli.outputs import OUTPUT_FILE
from keras_transformer.cli.places import check_output

LIMIT = 100_000
SHORTLIST = option(
    "--shortlist",
    type=EXISTING_FILE,
    group="Search",
    help="Restrict the search for each sentence to its candidates in this shortlist, a file that "
    "Marian or the command shortlist has written.",
)


def with_shortlist(pipeline, file, run) -> Any:
    """Returns a pipeline whose searches use the shortlist in a file.

    Args:
        pipeline: The pipeline of a run.
        file: Path of the shortlist.
        run: The run, for errors.

    Raises:
        click.UsageError: If the pipeline has no search that uses a shortlist.
        ValueError: If the file is damaged or belongs to another vocabulary.
    """
    if "shortlist" not in pipeline.accepts:
        refuse_of_task(run, pipeline.task)
    from keras_transformer.text.shortlist import Shortlist

    try:
        return pipeline.with_shortlist(Shortlist.read(file))
    except ValueError as error:
        text = str(error)
        raise ValueError(text if str(file) in text else f"{file}: {text}") from error


def refuse_of_task(run, task) -> None:
    """Raises a `click.UsageError` for a run whose task does not generate text from a source."""
    raise click.UsageError(
        f"{run} is a run for {task}: a shortlist needs a model that generates a text from a text."
    )


@click.command(cls=Command, example="keras-transformer shortlist runs/base runs/base/lex.bin")
@click.argument("run", type=FOLDER)
@click.argument("file", type=OUTPUT_FILE)
@option(
    "--source",
    type=EXISTING_FILE,
    group="Pairs to learn from",
    help="File of sentences, one per line.  [default: the training data of RUN]",
)
@option(
    "--target",
    type=EXISTING_FILE,
    group="Pairs to learn from",
    help="File of their translations, one per line.",
)
@count(
    "--limit",
    LIMIT,
    "Maximum number of pairs. If there are more, evenly spaced pairs are selected.",
    "PAIRS",
    group="Pairs to learn from",
)
@count(
    "--first",
    50,
    "Number of tokens at the beginning of the vocabulary that are candidates of every sentence.",
    least=0,
    group="Size of the shortlist",
)
@count(
    "--best",
    50,
    "Maximum number of candidates that a source token adds.",
    group="Size of the shortlist",
)
@batch_size("Number of pairs to read at a time.", group=None)
def shortlist(run, file, first, best, source, target, limit, batch_size) -> None:
    """Write a shortlist of RUN to FILE, in Marian's binary format.

    Folders in FILE that do not exist are created.

    For each source token, the shortlist contains candidates: the target tokens to which the source
    token is most often translated. The model of RUN reads pairs of sentences. Each target token is
    one count, which is divided among the three source tokens with the most attention in the
    decoder's last layer.

    With --shortlist, translate and the exports saved-model, litert, onnx and marian use the file:
    for each sentence, they compute logits only for the candidates of the sentence's tokens.
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
    file.parent.mkdir(parents=True, exist_ok=True)
    learned.write(file)
    lengths = len(learned.ids) / learned.vocab_size
    click.echo(
        f"{file}: {len(pairs[0]):,} pairs; {lengths:.1f} candidates per source token on average, "
        f"beside the first {first}."
    )


def _of_files(source, target, limit):
    """Returns the sources and targets of at most `limit` pairs of two files, at equal distances."""
    from keras_transformer.text.lines import read_parallel

    both = read_parallel(source, target)
    if not both[0]:
        raise ValueError(f"{source} has no line to learn from.")
    stride = -(-len(both[0]) // limit)
    return [lines[::stride] for lines in both]


def _of_run(run, limit):
    """Returns the sources and targets of at most `limit` pairs of a run's training data."""
    from keras_transformer.tasks.run import Run
    from keras_transformer.training.settings.sources import open_source
    from keras_transformer.training.settings.toml import load_settings

    settings = load_settings(Run(run).config)
    task = settings.task.get()
    if not task.has_two_sides:
        refuse_of_task(run, task.name)
    section = settings.data
    if getattr(section, "bidirectional", False):  # the run translates in one direction
        section = section.model_copy(update={"bidirectional": False})
    data = open_source(section, task.columns)
    rows, count = data.rows("train"), data.count("train")
    if count is not None:
        rows = rows.shard(-(-count // limit), 0)
    columns = zip(*rows.take(limit).as_numpy_iterator(), strict=True)
    return [[text.decode() for text in column] for column in columns]


@contextlib.contextmanager
def _bar(total):
    """Shows the progress of reading pairs on stderr; a bar if stderr is a terminal."""
    import rich.console  # late: most commands show no progress
    import rich.progress

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
