"""`keras-transformer distill`: a student is trained on what finished runs generate."""

import click

from keras_transformer.cli.command import (
    EXISTING_FILE,
    FOLDER,
    Command,
    FiniteRange,
    batch_size,
    shard,
)
from keras_transformer.cli.places import check_folder, new_folder
from keras_transformer.cli.search_options import (
    greedy_or_beam,
    make_search,
    name_default,
    option_of,
)

SIZE = 8  # of the beam, as the pipelines of browsers' models have it


@click.command(cls=Command)
@click.argument("config")
@click.argument("teachers", type=FOLDER, nargs=-1, required=True, metavar="TEACHER...")
@click.option("--output", "run", type=FOLDER, required=True, help="Folder of the student's run.")
@click.option("--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="Setting.")
@option_of(
    "beam",
    "Hypotheses that the teachers search with.",
    "the first teacher's own search, if that is a beam and no other option describes one; "
    f"otherwise a beam of {SIZE}",
)
@greedy_or_beam("greedy", "beam")
@click.option(
    "--best-of",
    type=click.IntRange(2),
    metavar="N",
    help="Of the N best outputs learn the one most like the reference, by chrF.  [default: the "
    "most probable one]",
)
@click.option(
    "--original",
    type=FiniteRange(0, min_open=True),
    metavar="TIMES",
    help="Learn the original pairs as well: how often an epoch holds each of them; 0.5 is every "
    "second.  [default: never]",
)
@click.option(
    "--monolingual",
    type=EXISTING_FILE,
    multiple=True,
    metavar="FILE",
    help="More sources for the teachers, one per line, without references; may be given again.",
)
@click.option(
    "--vocabulary",
    type=click.Choice(["teacher", "own"]),
    default="teacher",
    show_default=True,
    help="The teacher's pieces, or those that the student learns as [vocabulary] describes them.",
)
@shard(
    "Let the teachers search part I of N of the sources, I from 0 to N - 1, and train nothing; the "
    "same command without --shard, when all parts are done, goes on with what they generated."
)
@batch_size("Sentences that the teachers read at a time; it changes nothing else.")
def distill(
    config,
    teachers,
    run,
    overrides,
    best_of,
    original,
    monolingual,
    vocabulary,
    shard,
    batch_size,
    **options,
):
    """Train a student as CONFIG says on what TEACHER generates for the training sources.

    TEACHER is a finished run for translation or summarisation; several search together, with the
    mean of their probabilities. The same command continues where it stopped, while the teachers
    search as well as in the training. What they generated stays as text in RUN/distillation.
    Validation and test keep their own references.
    """
    from keras_transformer.training.distillation.distill import (
        Distillation,
        distill,
        holds_distillation,
    )
    from keras_transformer.training.settings.toml import load_settings

    search = _search_of(teachers[0], options)
    if best_of is not None and best_of > search.size:
        raise click.UsageError(
            f"--best-of {best_of} needs a beam of as many hypotheses. Received: "
            f"--beam {search.size}."
        )
    distillation = Distillation(
        search, best_of, original, monolingual, vocabulary == "own", batch_size, shard
    )
    settings = load_settings(config, overrides)
    check_folder(run)
    with new_folder(run, holds_distillation):
        distill(settings, run, teachers, distillation)


def _search_of(teacher, options):
    """The beam that options describe; where there are none that of a teacher, if it has one."""
    from keras_transformer.decoding import Beam
    from keras_transformer.tasks.run import Run

    if all(value is None for value in options.values()):
        own = Run(teacher).read_search()
        if isinstance(own, Beam):
            name_default(teacher, own, "--beam and what needs it")
            return own
    return make_search(**{**options, "beam": options["beam"] or SIZE})
