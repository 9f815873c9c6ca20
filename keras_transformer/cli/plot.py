"""`keras-transformer plot`: a command for each kind of plot."""

import warnings
from collections.abc import Callable
from typing import Any

import click

from keras_transformer.cli.command import FOLDER, Subcommands, refuse, warn
from keras_transformer.cli.help import count, option
from keras_transformer.cli.outputs import OUTPUT_FILE
from keras_transformer.cli.places import check_output
from keras_transformer.plots.figure import FORMATS, save_figure
from keras_transformer.plots.positions import DRAWN
from keras_transformer.tasks.attention import CLASS, HOPS, KINDS, SOUND


@click.group(cls=Subcommands, example="keras-transformer plot curves runs/base --output curves.png")
def plot() -> None:
    """Draw a plot as PNG, SVG or PDF."""


def output_option(required=True) -> Callable[[Any], Any]:
    """Returns the option that names the file to write."""
    return option(
        "--output",
        type=OUTPUT_FILE,
        required=required,
        help="File to write; its name ends in .png, .svg or .pdf. Folders in its path that do not "
        "exist are created.",
    )


OUTPUT = output_option()


@plot.command(
    example="""keras-transformer plot attention runs/base "A man rides a horse." \\
  --output attention.png"""
)
@click.argument("model", type=FOLDER)
@click.argument("sentence")
@output_option(required=False)
@option(
    "--html",
    type=OUTPUT_FILE,
    help="HTML page to write, on which the reader chooses kind, layer and head. Folders in its "
    "path that do not exist are created.",
)
@option(
    "--kind",
    type=click.Choice([*KINDS, CLASS, HOPS, SOUND]),
    help="Kind of attention. cross: from the decoder to the source; encoder, decoder: between "
    "tokens of the same sequence; class: from the class token to an image; hops: from the hops "
    "of a memory network to the sentences; sound: from words to a recording.  [default: the "
    "first of these that MODEL has]",
)
@option(
    "--layers",
    is_flag=True,
    help="Draw every layer and head.  [default: draw the mean over layers and heads]",
)
@option(
    "--words",
    is_flag=True,
    help="Draw words instead of tokens. White means an attention of 1 and black an attention "
    "of 0, as in Figure 3 of Bahdanau et al. (2015).",
)
def attention(model, sentence, output, layers, words, kind, html) -> None:
    """Draw the attention between the tokens of a text.

    MODEL is a run, or a SavedModel that was exported with --alignment. The model reads SENTENCE,
    and a translation model also translates it. For an image classifier, SENTENCE is the path of an
    image, and the plot shows the attention of the class token to the patches of the image. For
    speech recognition, SENTENCE is the path of a recording, and the plot shows its spectrogram and
    the attention of each word of the transcript over time. For questions about stories, SENTENCE is
    a line as for predict, and the plot shows the attention of each hop to the sentences.
    """
    from keras_transformer.cli.opened import open_attention
    from keras_transformer.plots.attention import choose
    from keras_transformer.plots.attention_page import save_page

    if layers and words:
        raise click.UsageError("--words shows the mean over layers and heads; leave out --layers.")
    if output is None and html is None:
        raise click.UsageError("--output or --html must name a file.")
    if output is None:
        refuse(
            ["layers", "words", "kind"],
            "has no effect without --output: the page shows all of them.",
        )
    else:
        check_output(output, *FORMATS)
    if html is not None:
        check_output(html, ".html")
    attentions = open_attention(model).attention(sentence)
    if any(one.truncated for one in attentions.values()):
        warn("SENTENCE is longer than the model's limit; its end was cut off")
    if output is not None:
        one = choose(attentions, kind)
        _save(_attention_figure(one, layers, words), output)
    if html is not None:
        save_page(attentions, html)
        click.echo(html)


@plot.command(example="keras-transformer plot positions --output positions.png --length 100")
@OUTPUT
@option(
    "--kind",
    type=click.Choice(DRAWN),
    default="sinusoidal",
    help="Position encoding without weights, as in the setting model.position.",
)
@count("--length", 64, "Number of positions.", "T")
@count("--d-model", 128, "Width of the model.", "D", least=2)
def positions(output, kind, length, d_model) -> None:
    """Draw a position encoding and its dot products.

    The plot shows the encodings of T positions, a matrix [T, D], and the dot products of all pairs
    of encodings.
    """
    from keras_transformer.plots.positions import positions_figure

    check_output(output, *FORMATS)
    _save(positions_figure(kind, length, d_model), output)


@plot.command(example="keras-transformer plot masks --output masks.png --length 8 --real 5")
@OUTPUT
@count("--length", 8, "Length of the padded row.", "T")
@count("--real", 5, "Number of tokens before the padding.", "T")
def masks(output, length, real) -> None:
    """Draw the padding mask, the causal mask, and both combined."""
    from keras_transformer.plots.masks import masks_figure

    check_output(output, *FORMATS)
    _save(masks_figure(length, real), output)


@plot.command(example="keras-transformer plot schedule wmt14_en_de_base --output schedule.svg")
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG...")
@OUTPUT
@option(
    "--scale",
    type=click.Choice(["linear", "log"]),
    default="linear",
    help="Scale of both axes.",
)
def schedule(configs, output, scale) -> None:
    """Draw the learning rate at each update.

    CONFIG is a TOML file, such as the config.toml of a run, or the name of a configuration in the
    package. Several configurations share one plot.
    """
    from keras_transformer.plots.schedule import schedule_figure
    from keras_transformer.training.schedule import make_schedule
    from keras_transformer.training.settings.derived import OF_A_SCHEDULE, left_out
    from keras_transformer.training.settings.toml import load_settings

    check_output(output, *FORMATS)
    _check_different(configs)
    schedules = {}
    for name in configs:
        settings = load_settings(name)
        if open_keys := [key for key in left_out(settings) if key in OF_A_SCHEDULE]:
            raise click.UsageError(
                f"{name}: {', '.join(open_keys)} would be derived from the training data. Set "
                "them, or use the config.toml of a run."
            )
        updates, width = settings.training.updates, settings.config().d_model
        schedules[name] = make_schedule(settings.schedule, width, updates), updates
    _save(schedule_figure(schedules, scale), output)


@plot.command(example="keras-transformer plot curves runs/base runs/big --output curves.png")
@click.argument("runs", nargs=-1, required=True, type=FOLDER, metavar="RUN...")
@OUTPUT
def curves(runs, output) -> None:
    """Draw the validation metrics of runs.

    The runs need not be finished. Several runs share one plot.
    """
    from keras_transformer.plots.curves import curves_figure
    from keras_transformer.tasks.run import Run
    from keras_transformer.training.evaluate import task_of
    from keras_transformer.training.loop.history import History, columns_of

    check_output(output, *FORMATS)
    _check_different(runs)
    histories = {}
    for run in runs:
        task = task_of(run)
        histories[str(run)] = History.read(Run(run).history, columns_of(task)), task
    _save(curves_figure(histories), output)


@plot.command(example="keras-transformer plot structure wmt14_en_de_base --output model.pdf")
@click.argument("model_or_config")
@OUTPUT
def structure(model_or_config, output) -> None:
    """Draw the structure of a model, as in Figure 1 of the paper.

    The plot also shows shapes and numbers of parameters. MODEL_OR_CONFIG is the folder of a run, a
    TOML file, or the name of a configuration in the package. A configuration does not determine the
    number of labels of a classifier, so two labels are drawn.
    """
    from keras_transformer.plots.structure import structure_figure
    from keras_transformer.tasks.run import Run
    from keras_transformer.training.factory import weightless_model
    from keras_transformer.training.settings.toml import load_settings

    check_output(output, *FORMATS)
    run = Run(model_or_config)
    is_run = run.path.is_dir()
    model = run.load_model() if is_run else weightless_model(load_settings(model_or_config))
    _save(structure_figure(model), output)


def _attention_figure(attention, layers, words):
    """Returns the figure of attention of any kind."""
    from keras_transformer.plots.attention import alignment_figure, attention_figure
    from keras_transformer.tasks.image_classification.plots import image_attention_figure
    from keras_transformer.tasks.speech_recognition.plots import speech_attention_figure
    from keras_transformer.tasks.story_questions.plots import hops_figure

    figures = {CLASS: image_attention_figure, HOPS: hops_figure, SOUND: speech_attention_figure}
    if not words:
        return figures.get(attention.kind, attention_figure)(attention, layers)
    if attention.kind in figures:
        raise click.UsageError(
            f"--words draws attention between texts. Received: attention of the kind "
            f"{attention.kind}."
        )
    return alignment_figure(attention)


def _check_different(names):
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"{twice} is named twice: name each only once.")


def _save(figure, output):
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        save_figure(figure, output)
    if any("missing from" in str(remark.message) for remark in remarks):
        warn("no font of this machine has some of the letters, which are drawn as boxes")
    click.echo(output)
