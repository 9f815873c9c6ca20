"""`keras-transformer`: its commands."""

import contextlib
import json
import os
import sys
import traceback

import click

from keras_transformer.cli.command import (
    EXISTING_FILE,
    FOLDER,
    Commands,
    batch_size,
    refuse,
    standard,
    start,
    warn,
)
from keras_transformer.cli.convert import convert
from keras_transformer.cli.distill import distill
from keras_transformer.cli.export import export
from keras_transformer.cli.places import check_folder, new_folder
from keras_transformer.cli.plot import plot
from keras_transformer.cli.predict import predict
from keras_transformer.cli.search_options import (
    OF_GREEDY_OR_BEAM,
    greedy_or_beam,
    search_of_run,
)
from keras_transformer.cli.shortlist import SHORTLIST, shortlist, with_shortlist

RUNS = click.argument("runs", type=FOLDER, nargs=-1, required=True, metavar="RUN...")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--traceback", is_flag=True, help="Show where in the code an error was raised.")
@click.version_option(package_name="keras-transformer-kit", prog_name="keras-transformer")
def cli(traceback):
    """Train, evaluate and ship the Transformer of "Attention Is All You Need"."""


@cli.command()
@click.argument("config")
@click.option("--output", "run", type=FOLDER, required=True, help="Folder of the run.")
@click.option("--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="Setting.")
@click.option(
    "--strategy",
    type=click.Choice(["default", "mirrored", "multi_worker", "tpu"]),
    default="default",
    show_default=True,
    help="One device; all GPUs of this machine; several machines, as TF_CONFIG says; the TPU "
    "TPU_NAME.",
)
def train(config, run, overrides, strategy):
    """Train as CONFIG says; continue where RUN stopped if it already holds a checkpoint.

    CONFIG is a TOML file, or the name of one that comes with the package.
    """
    from keras_transformer.training.devices.strategy import make_strategy
    from keras_transformer.training.settings.toml import load_settings
    from keras_transformer.training.train import train as train_run

    settings = load_settings(config, overrides)
    check_folder(run)
    alone = strategy != "multi_worker"  # of several workers none knows what the others have done
    with new_folder(run, _holds_training) if alone else contextlib.nullcontext():
        try:
            train_run(settings, run, strategy=make_strategy(strategy))
        except ConnectionError as error:
            _leave(error)


def _holds_training(run):
    return any(run.glob("checkpoints/*.npz")) or (run / "model.keras").exists()


@cli.command(cls=click.Command)  # answers at once: it does not need TensorFlow
@click.argument("section", required=False)
@click.option("--markdown", is_flag=True, help="All of them, as the page docs/settings.md.")
def settings(section, markdown):
    """Print every setting of a training with its type, default and meaning.

    SECTION is one section of the configuration, or a kind of [data]: cldr, text, tfds, reports.
    """
    from keras_transformer.training.settings.page import as_markdown, as_text

    if markdown and section:
        raise click.UsageError("--markdown has no effect on one section: it is the whole page.")
    click.echo(as_markdown() if markdown else as_text(section))


def _leave(error):
    """Ends the process at once: TensorFlow may wait for ever for the worker that is lost."""
    if click.get_current_context().find_root().params["traceback"]:
        traceback.print_exception(error)
    click.ClickException(" ".join(str(error).split())).show()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


@cli.command()
@click.argument("run", type=FOLDER)
@click.option("--last", default=5, show_default=True, type=click.IntRange(1), metavar="N")
@click.option("--output", type=FOLDER, help="Folder of the new run.  [default: RUN-average-N]")
def average(run, last, output):
    """Average the weights of the last N checkpoints of RUN into a new run.

    The new run is used like any other: evaluate it, translate with it, export it.
    """
    from keras_transformer.training.averaging import average_checkpoints

    if output is not None:
        check_folder(output)
    click.echo(average_checkpoints(run, last, output))


@cli.command()
@RUNS
@click.option("--source", type=EXISTING_FILE, help="Inputs, one per line.")
@click.option(
    "--reference",
    type=EXISTING_FILE,
    help="What belongs to them, line by line: translations, summaries, labels. A language model "
    "has none.",
)
@click.option("--split", default="test", show_default=True, help="Of the run's own data.")
@click.option(
    "--tokenize",
    type=click.Choice(["13a", "none", "intl", "char"]),
    default="13a",
    show_default=True,
    help="Of translations, sacreBLEU's tokeniser; none for text that is tokenised already.",
)
@click.option("--lowercase", is_flag=True, help="Of translations: ignore case in BLEU and chrF.")
@greedy_or_beam()
@SHORTLIST
def evaluate(runs, source, reference, split, shortlist, **options):
    """Measure RUN as its task is measured, and print the figures as JSON on stdout.

    Translations: sacreBLEU and chrF with signatures. Summaries: ROUGE. Labels: accuracy and macro
    F1. Language models: perplexity per token and per character.

    Without files, a split of the data that RUN was trained on; the figures of the test split are
    kept in RUN/metrics.json.

    Several runs answer together, see `predict`; the figures name them, and no run keeps them.
    Without files their data must be the same. A line that is not UTF-8 is an error: no line is left
    out of a metric.
    """
    from keras_transformer.tasks import open_run
    from keras_transformer.training.evaluate import evaluate_files, evaluate_split, task_of

    if reference and not source:
        raise click.UsageError("--reference needs --source.")
    if source:
        refuse(["split"], "has no effect with --source.")
    standard("stdout")  # open? before the work is done
    run, name = runs[0] if len(runs) == 1 else list(runs), " and ".join(map(str, runs))
    options["search"] = search_of_run(run, options)
    task = task_of(run)
    for option in options:
        if option not in task.evaluation_options:
            names = OF_GREEDY_OR_BEAM if option == "search" else [option]
            refuse(names, f"has no effect on {name}, a run for {task.name}.")
    options = {option: options[option] for option in task.evaluation_options}
    if shortlist:
        options["pipeline"] = with_shortlist(open_run(run), shortlist, name)
    if source:
        results = evaluate_files(run, source, reference, **options)
    else:
        results = evaluate_split(run, split, **options)
    click.echo(json.dumps(results, indent=2, ensure_ascii=False))


@cli.command()
@RUNS
@click.option("--source", type=EXISTING_FILE, required=True, help="Sentences, one per line.")
@click.option("--target", type=EXISTING_FILE, required=True, help="Translations, line by line.")
@batch_size()
@click.option(
    "--strict",
    is_flag=True,
    help="Stop at the first pair with a line that is not UTF-8, with an error; the scores of the "
    "pairs before it are written.  [default: warn, and write 0 and 0 tokens]",
)
def score(runs, source, target, batch_size, strict):
    """Write how probable RUN finds given translations; several runs, with their mean probability.

    One line for each pair: the natural logarithm of the probability of the translation, a tab, and
    its number of tokens, the end of the sentence included in both.
    """
    from keras_transformer.cli.streaming import score_files
    from keras_transformer.tasks.translator import Translator
    from keras_transformer.text.lines import count_parallel

    count_parallel(source, target)  # before the model is loaded
    score_files(
        Translator.from_run(list(runs)),
        source,
        target,
        standard("stdout"),
        warn,
        batch_size=batch_size,
        strict=strict,
    )


cli.add_command(predict)
cli.add_command(predict, "translate")
cli.add_command(convert)
cli.add_command(distill)
cli.add_command(export)
cli.add_command(plot)
cli.add_command(shortlist)


def main():
    """Runs the command line."""
    start()
    cli(prog_name="keras-transformer")
