"""The commands of `keras-transformer`."""

import contextlib
import os
import sys
import traceback
from typing import Any

import click

from keras_transformer.cli.chat import chat
from keras_transformer.cli.command import (
    EXISTING_FILE,
    FOLDER,
    Commands,
    PlainCommand,
    batch_size,
    failing_in_one_line,
    refuse,
    standard,
    start,
    warn,
)
from keras_transformer.cli.convert import convert
from keras_transformer.cli.distill import SET, distill, run_folder
from keras_transformer.cli.export import export
from keras_transformer.cli.help import count, option
from keras_transformer.cli.index import index, search
from keras_transformer.cli.neighbors import neighbors
from keras_transformer.cli.outputs import OUTPUT
from keras_transformer.cli.places import check_folder, new_folder
from keras_transformer.cli.plot import plot
from keras_transformer.cli.predict import predict
from keras_transformer.cli.search_options import (
    CTC,
    OF_GREEDY_OR_BEAM,
    greedy_or_beam,
    search_of_run,
)
from keras_transformer.cli.serve import serve
from keras_transformer.cli.shortlist import SHORTLIST, shortlist, with_shortlist
from keras_transformer.cli.threshold import threshold
from keras_transformer.files import json_text
from keras_transformer.native_code import ends_promptly
from keras_transformer.text.scripts import TOKENIZERS

RUNS = click.argument("runs", type=FOLDER, nargs=-1, required=True, metavar="RUN...")


# The commands in the order in which they are used, by heading of `--help`.
SECTIONS = {
    "Train": ("train", "distill", "average", "settings"),
    "Evaluate": ("evaluate", "score", "threshold", "plot"),
    "Predict": ("predict", "translate", "chat", "index", "search", "neighbors"),
    "Export and serve": ("export", "shortlist", "serve"),
    "Checkpoints of other projects": ("convert",),
}
EXIT_CODES = (
    ("0", "Success."),
    ("1", "A file, a model or a setting is wrong. One line on stderr states what is wrong."),
    ("2", "The command line is wrong. One line on stderr states what is wrong."),
    ("130", "Ended by Ctrl-C."),
    ("143", "Ended by SIGTERM."),
)
COMPLETION = (
    ("bash", 'eval "$(_KERAS_TRANSFORMER_COMPLETE=bash_source keras-transformer)"'),
    ("zsh", 'eval "$(_KERAS_TRANSFORMER_COMPLETE=zsh_source keras-transformer)"'),
    ("fish", "_KERAS_TRANSFORMER_COMPLETE=fish_source keras-transformer | source"),
)
EXAMPLE = """keras-transformer train demo --output runs/demo
keras-transformer evaluate runs/demo
echo "July 4, 2026" | keras-transformer translate runs/demo"""


def _notes():
    return {
        "Exit codes": EXIT_CODES,
        "Completion of commands and options, a line for the start file of a shell": COMPLETION,
    }


@click.group(
    cls=Commands,
    sections=SECTIONS,
    notes=_notes,
    example=EXAMPLE,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--traceback", is_flag=True, help="Show where in the code an error was raised.")
@click.version_option(package_name="keras-transformer-kit", prog_name="keras-transformer")
def cli(traceback) -> None:
    """Train, evaluate and export the Transformer of "Attention Is All You Need"."""


def _configurations():
    from keras_transformer.training.settings.packaged import packaged

    return {"Configurations in the package": [*packaged().items()]}


TRAIN = """# Train a configuration of the package, with another setting:
keras-transformer train demo --output runs/demo --set training.updates=1000
# Train your own, and later resume it with the same line:
keras-transformer train my.toml --output runs/mine"""


@cli.command(example=TRAIN, notes=_configurations)
@click.argument("config")
@run_folder("Folder of the run.")
@SET
@option(
    "--strategy",
    type=click.Choice(["default", "mirrored", "multi_worker", "tpu"]),
    default="default",
    group="Training",
    help="Devices to train on. default: one device; mirrored: all GPUs of this machine; "
    "multi_worker: the machines that TF_CONFIG lists; tpu: the TPU that TPU_NAME names.",
)
def train(config, run, overrides, strategy) -> None:
    """Train a model, or resume after an interruption.

    CONFIG is a TOML file or the name of a configuration in the package (see below). Training
    resumes if the folder of the run already contains a checkpoint.
    """
    from keras_transformer.training.devices.strategy import make_strategy
    from keras_transformer.training.settings.toml import load_settings
    from keras_transformer.training.training_run import train as train_run

    settings = load_settings(config, overrides)
    check_folder(run)
    alone = strategy != "multi_worker"  # a worker does not know what the others have written
    with new_folder(run, _holds_training) if alone else contextlib.nullcontext():
        try:
            train_run(settings, run, strategy=make_strategy(strategy))
        except ConnectionError as error:
            _leave(error)


def _holds_training(run):
    return any(run.glob("checkpoints/*.npz")) or (run / "model.keras").exists()


@cli.command(cls=PlainCommand, example="keras-transformer settings schedule")  # no TensorFlow
@click.argument("section", required=False)
@option(
    "--markdown",
    "folder",
    type=OUTPUT,
    metavar="FOLDER",
    help="Write all settings in Markdown to this folder, as in docs/: settings.md, and a page for "
    "each task in settings/.",
)
def settings(section, folder) -> None:
    """Print the settings of a configuration, with type, default and meaning.

    SECTION restricts the list to one section of the configuration (such as training), to one task
    (such as classification), or to one kind of [data] (such as text or tfds).
    """
    from keras_transformer.training.settings.page import as_text
    from keras_transformer.training.settings.pages import write_pages

    if folder and section:
        raise click.UsageError("--markdown has no effect on one section: it writes all pages.")
    if folder:
        write_pages(folder)
    else:
        click.echo(as_text(section))


def _leave(error):
    """Ends the process at once, because TensorFlow may wait forever for a lost worker."""
    if click.get_current_context().find_root().params["traceback"]:
        traceback.print_exception(error)
    click.ClickException(" ".join(str(error).split())).show()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


@cli.command(example="keras-transformer average runs/base --last 5")
@click.argument("run", type=FOLDER)
@count("--last", 5, "Number of checkpoints to average.")
@option("--output", type=OUTPUT, help="Folder of the new run.  [default: RUN-average-N]")
def average(run, last, output) -> None:
    """Average the weights of the last checkpoints of RUN.

    The result is a new run, which can be evaluated, used and exported like any other run.
    """
    from keras_transformer.training.averaging import average_checkpoints

    if output is not None:
        check_folder(output)
    click.echo(average_checkpoints(run, last, output))


EVALUATE = """# The test split of the run's own data:
keras-transformer evaluate runs/base --beam 4
# Your own files:
keras-transformer evaluate runs/base --source test.en --reference test.de
# An ensemble:
keras-transformer evaluate runs/base runs/base2"""


@cli.command(example=EVALUATE)
@RUNS
@option(
    "--split",
    default="test",
    group="Data",
    help="Split of the run's own data to evaluate: train, validation or test.",
)
@option(
    "--source",
    type=EXISTING_FILE,
    group="Data",
    help="File of inputs, one per line, to evaluate in place of a split.",
)
@option(
    "--reference",
    type=EXISTING_FILE,
    group="Data",
    help="File with the correct output for each line of --source: a translation, a summary or a "
    "label. A language model needs no reference.",
)
@option(
    "--tokenize",
    type=click.Choice(TOKENIZERS),
    group="Metrics of translations",
    help="Tokeniser of sacreBLEU; none for text that is tokenised already.  [default: 13a; for "
    "scripts without spaces between words, zh (Chinese) or char]",
)
@option(
    "--lowercase",
    is_flag=True,
    group="Metrics of translations",
    help="Ignore case in BLEU and chrF.",
)
@greedy_or_beam()
@CTC
@SHORTLIST
def evaluate(runs, source, reference, split, shortlist, **options: Any) -> None:
    """Evaluate RUN with the metrics of its task.

    Prints the results on stdout as JSON. Translations: sacreBLEU and chrF with signatures.
    Summaries: ROUGE. Speech: error rates of words and characters, as fractions, and the real-time
    factor. Labels: accuracy and macro F1. Several labels per text: micro and macro F1, subset
    accuracy, and precision and recall of each label. Language models: perplexity per token and per
    character.

    Without --source, evaluates a split of the data that RUN was trained on. Results for the test
    split are also stored in RUN/metrics.json.

    The result `incomplete` is the number of outputs that reached their maximum length. A warning
    names each of these outputs.

    Several runs are evaluated as an ensemble, see `predict`. The results name all runs and are not
    stored. Without --source, all runs must have the same data. A line that is not UTF-8 is an
    error, because every line counts in a metric.
    """
    from keras_transformer.tasks import open_run
    from keras_transformer.tasks.incomplete import INCOMPLETE
    from keras_transformer.training.evaluate import evaluate_files, evaluate_split, task_of

    if reference and not source:
        raise click.UsageError("--reference needs --source.")
    if source:
        refuse(["split"], "has no effect with --source.")
    standard("stdout")  # fails early if stdout is closed
    run, name = runs[0] if len(runs) == 1 else list(runs), " and ".join(map(str, runs))
    options["search"] = search_of_run(run, options)
    task = task_of(run)
    for key in options:
        if key not in task.evaluation_options:
            names = OF_GREEDY_OR_BEAM if key == "search" else [key]
            refuse(names, f"has no effect on {name}, a run for {task.name}.")
    if "report_incomplete" in task.evaluation_options:
        what = "line" if source else "example"
        options["report_incomplete"] = lambda number: warn(f"{what} {number}: {INCOMPLETE}")
    options = {key: options[key] for key in task.evaluation_options}
    with ends_promptly():
        if shortlist:
            options["pipeline"] = with_shortlist(open_run(run), shortlist, name)
        if source:
            results = evaluate_files(run, source, reference, **options)
        else:
            results = evaluate_split(run, split, **options)
    click.echo(json_text(results))


@cli.command(example="keras-transformer score runs/base --source test.en --target test.de")
@RUNS
@option("--source", type=EXISTING_FILE, required=True, help="File of sentences, one per line.")
@option(
    "--target",
    type=EXISTING_FILE,
    required=True,
    help="File of their translations, one per line.",
)
@option(
    "--strict",
    is_flag=True,
    help="Stop with an error at the first pair with a line that is not UTF-8. The scores of "
    "earlier pairs are written.  [default: warn and write a score of 0 with 0 tokens]",
)
@batch_size("Number of pairs to score at a time.", group=None)
def score(runs, source, target, batch_size, strict) -> None:
    """Score existing translations with the model of RUN.

    Writes one line per pair: the natural logarithm of the probability of the translation, a tab,
    and the number of its tokens. Both values include the end token. Several runs score with the
    mean of their probabilities.
    """
    from keras_transformer.opening.stream import score_files
    from keras_transformer.tasks.translation.pipeline import Translator
    from keras_transformer.text.lines import count_parallel

    count_parallel(source, target)  # before the model is loaded
    how = {"batch_size": batch_size, "strict": strict}
    with ends_promptly():
        translator = Translator.from_run(list(runs))
        score_files(translator, source, target, standard("stdout"), warn, **how)


cli.add_command(predict)
cli.add_command(predict, "translate")
cli.add_command(chat)
cli.add_command(convert)
cli.add_command(distill)
cli.add_command(export)
cli.add_command(index)
cli.add_command(neighbors)
cli.add_command(plot)
cli.add_command(search)
cli.add_command(serve)
cli.add_command(shortlist)
cli.add_command(threshold)


def main() -> None:
    """Runs the command line."""
    start()
    with failing_in_one_line():
        cli(prog_name="keras-transformer")
