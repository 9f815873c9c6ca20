"""`keras-transformer plot`: a command for each picture."""

import typing
import warnings

import click

from keras_transformer.cli.command import FILE, FOLDER, Command, refuse, warn
from keras_transformer.cli.places import check_output
from keras_transformer.config.block import Position
from keras_transformer.plots.figure import FORMATS, save_figure
from keras_transformer.tasks.attention import CLASS, KINDS


class Plots(click.Group):
    """The commands below `plot`."""

    command_class = Command


@click.group(cls=Plots)
def plot():
    """Draw a picture: PNG, SVG or PDF, by the ending of its file."""


def output_option(required=True):
    """Returns the option that names the file to write."""
    return click.option(
        "--output",
        type=FILE,
        required=required,
        help="File to write, which ends in .png, .svg or .pdf.",
    )


OUTPUT = output_option()


@plot.command()
@click.argument("model", type=FOLDER)
@click.argument("sentence")
@output_option(required=False)
@click.option(
    "--layers", is_flag=True, help="Every layer and head by itself. Default: the mean of all."
)
@click.option(
    "--kind",
    type=click.Choice([*KINDS, CLASS]),
    help="Attention of the decoder to the source, of encoder or decoder to itself, or of the class "
    "token of an image.  [default: the first of these that MODEL has]",
)
@click.option(
    "--html",
    type=FILE,
    help="Page to write, which ends in .html: all kinds, layers and heads to choose from.",
)
def attention(model, sentence, output, layers, kind, html):
    """Draw which pieces each piece of a text attends to.

    MODEL is a run, or a SavedModel that was exported with --alignment. The text is SENTENCE, and of
    a translator also its translation. Of a classifier of images it is the path of an image, and the
    picture shows what the class token attends to in it.
    """
    from keras_transformer.cli.open_model import open_attention
    from keras_transformer.plots.attention import attention_figure, choose
    from keras_transformer.plots.attention_page import save_page
    from keras_transformer.plots.image_attention import image_attention_figure

    if output is None and html is None:
        raise click.UsageError("--output or --html must name a file.")
    if output is None:
        refuse(["layers", "kind"], "has no effect without --output: the page shows all of them.")
    else:
        check_output(output, *FORMATS)
    if html is not None:
        check_output(html, ".html")
    attentions = open_attention(model).attention(sentence)
    if any(one.truncated for one in attentions.values()):
        warn("SENTENCE is longer than the model's limit; its end was cut off")
    if output is not None:
        one = choose(attentions, kind)
        draw = {CLASS: image_attention_figure}.get(one.kind, attention_figure)
        _save(draw(one, layers), output)
    if html is not None:
        save_page(attentions, html)
        click.echo(html)


@plot.command()
@OUTPUT
@click.option(
    "--kind",
    type=click.Choice(typing.get_args(Position)),
    default="sinusoidal",
    show_default=True,
    help="As in the setting model.position; one whose codes are fixed.",
)
@click.option("--length", type=click.IntRange(1), default=64, show_default=True, metavar="T")
@click.option("--d-model", type=click.IntRange(2), default=128, show_default=True, metavar="D")
def positions(output, kind, length, d_model):
    """Draw the codes of T positions, [T, D], and the dot products of all pairs."""
    from keras_transformer.plots.positions import positions_figure

    check_output(output, *FORMATS)
    _save(positions_figure(kind, length, d_model), output)


@plot.command()
@OUTPUT
@click.option(
    "--length", type=click.IntRange(1), default=8, show_default=True, help="Padded length."
)
@click.option(
    "--real", type=click.IntRange(1), default=5, show_default=True, help="Tokens before padding."
)
def masks(output, length, real):
    """Draw which positions may attend to which: padding mask, causal mask, and both."""
    from keras_transformer.plots.masks import masks_figure

    check_output(output, *FORMATS)
    _save(masks_figure(length, real), output)


@plot.command()
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG...")
@OUTPUT
@click.option(
    "--scale",
    type=click.Choice(["linear", "log"]),
    default="linear",
    show_default=True,
    help="Of both axes.",
)
def schedule(configs, output, scale):
    """Draw the learning rate of each update, as one or several configurations have it.

    CONFIG is a TOML file, such as the config.toml of a run, or the name of one that comes with the
    package.
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
                f"{name}: {', '.join(open_keys)} would follow from the data of a training. Set "
                "them, or name the config.toml of a run."
            )
        updates, width = settings.training.updates, settings.config().d_model
        schedules[name] = make_schedule(settings.schedule, width, updates), updates
    _save(schedule_figure(schedules, scale), output)


@plot.command()
@click.argument("runs", nargs=-1, required=True, type=FOLDER, metavar="RUN...")
@OUTPUT
def curves(runs, output):
    """Draw what the validations of one or several runs have measured, finished or not."""
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


@plot.command()
@click.argument("model_or_config")
@OUTPUT
def structure(model_or_config, output):
    """Draw the model of a run or of a configuration as the paper's Fig. 1, with its sizes.

    MODEL_OR_CONFIG is the folder of a run, a TOML file, or the name of one that comes with the
    package. A configuration leaves open how many labels a classifier has: two are drawn.
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


def _check_different(names):
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"{twice} is named twice.")


def _save(figure, output):
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        save_figure(figure, output)
    if any("missing from" in str(remark.message) for remark in remarks):
        warn("no font of this machine has some of the letters, which are drawn as boxes")
    click.echo(output)
