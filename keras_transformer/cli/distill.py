"""`keras-transformer distill`: training of a student on the outputs of finished runs."""

from collections.abc import Callable
from typing import Any

import click

from keras_transformer.cli.command import (
    EXISTING_FILE,
    FOLDER,
    Command,
    batch_size,
    refuse,
    shard,
)
from keras_transformer.cli.help import count, option
from keras_transformer.cli.numbers import LimitedNumber
from keras_transformer.cli.outputs import OUTPUT
from keras_transformer.cli.places import check_folder, new_folder
from keras_transformer.cli.search_options import (
    greedy_or_beam,
    make_search,
    name_default,
    option_of,
)

SIZE = 8  # hypotheses, as in the pipelines that train translation models for browsers
SET = option(
    "--set",
    "overrides",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    group="Training",
    help="Setting that replaces the setting in CONFIG. May be repeated.",
)
EXAMPLE = """# A student of one teacher, which also translates a file of further sentences:
keras-transformer distill student.toml runs/teacher \\
  --output runs/student --beam 8 --monolingual more.en
# A student of two teachers, which learns their probabilities as well:
keras-transformer distill student.toml runs/one runs/two \\
  --output runs/student --word-level 8"""


def run_folder(help) -> Callable[[Any], Any]:
    """Returns the option `--output` of a training."""
    return option("--output", "run", type=OUTPUT, required=True, group="Training", help=help)


@click.command(cls=Command, example=EXAMPLE)
@click.argument("config")
@click.argument("teachers", type=FOLDER, nargs=-1, metavar="TEACHER...")
@run_folder("Folder of the student's run.")
@SET
@option(
    "--monolingual",
    type=EXISTING_FILE,
    multiple=True,
    metavar="FILE",
    group="What the student learns",
    help="File of further sources for the teachers, one per line, without references. May be "
    "repeated.",
)
@option(
    "--backward",
    type=FOLDER,
    multiple=True,
    metavar="TEACHER",
    group="What the student learns",
    help="Run that translates in the opposite direction. This run translates the targets of the "
    "training data; the student also learns to translate the results back. May be repeated.",
)
@option(
    "--separate",
    is_flag=True,
    group="What the student learns",
    help="Learn the outputs of each teacher separately, as in data diversification.  [default: all "
    "teachers of a direction form an ensemble]",
)
@option(
    "--monolingual-target",
    "monolingual_targets",
    type=EXISTING_FILE,
    multiple=True,
    metavar="FILE",
    group="What the student learns",
    help="File of further targets for the backward teachers, one per line, without sources. "
    "May be repeated.",
)
@count(
    "--best-of",
    None,
    "Among the N best outputs, learn the one that is most similar to the reference, by chrF. For a "
    "backward teacher, the reference is the original source.  [default: the most probable output]",
    least=2,
    group="What the student learns",
)
@count(
    "--word-level",
    None,
    "Also learn the teachers' probabilities of the most probable tokens at each position: K "
    "tokens, for example 8.  [default: only texts]",
    "K",
    group="What the student learns",
)
@option(
    "--original",
    type=LimitedNumber(float, above=0),
    metavar="TIMES",
    group="What the student learns",
    help="Also learn the original pairs. An epoch contains each pair TIMES times; 0.5 means every "
    "second pair.  [default: never]",
)
@option(
    "--vocabulary",
    type=click.Choice(["teacher", "own"]),
    default="teacher",
    group="What the student learns",
    help="Vocabulary of the student: the teacher's vocabulary, or a new one, learned as the "
    "section [vocabulary] in CONFIG describes.",
)
@option_of(
    "beam",
    "Number of hypotheses of the teachers' beam search.",
    "the first teacher's own beam search, if it has one and no other option of the search is "
    f"given; otherwise a beam of {SIZE}",
)
@greedy_or_beam("greedy", "beam")
@batch_size(
    "Number of sentences that the teachers read at a time. The outputs do not depend on this "
    "number.",
    group="Teachers' work",
)
@shard(
    "Divide the sources into N parts, numbered from 0, and let the teachers process only part I, "
    "without training. When all parts are done, the same command without --shard trains on their "
    "outputs.",
    group="Teachers' work",
)
def distill(
    config,
    teachers,
    run,
    overrides,
    best_of,
    original,
    monolingual,
    backward,
    monolingual_targets,
    separate,
    word_level,
    shard,
    batch_size,
    vocabulary,
    **options,
) -> None:
    """Train a student on the outputs of one or more teachers.

    CONFIG describes the student. The teachers generate the targets of the student's training data.
    TEACHER is a finished run for translation or summarisation. Several teachers form an ensemble,
    which uses the mean of their probabilities. With --backward, other teachers generate sources for
    the given targets. If the command is interrupted, run it again: the work of the teachers and the
    training of the student resume. The outputs of the teachers are stored as text in the student's
    run, in the folder distillation. Validation and test use the original references.
    """
    from keras_transformer.training.distillation.distill import distill, holds_distillation
    from keras_transformer.training.distillation.options import Distillation
    from keras_transformer.training.settings.toml import load_settings

    if not (teachers or backward):
        raise click.UsageError("Missing argument 'TEACHER...'.")
    if vocabulary == "own":
        refuse(["word_level"], "needs --vocabulary teacher: the teachers predict its tokens.")
    search = _search_of([*teachers, *backward][0], options)
    if best_of is not None and best_of > search.size:
        raise click.UsageError(
            f"--best-of {best_of} needs a beam of as many hypotheses. Received: "
            f"--beam {search.size}."
        )
    distillation = Distillation(
        search,
        best_of=best_of,
        original=original,
        monolingual=monolingual,
        backward=backward,
        monolingual_targets=monolingual_targets,
        separate=separate,
        word_level=word_level,
        own_vocabulary=vocabulary == "own",
        batch_size=batch_size,
        shard=shard,
    )
    settings = load_settings(config, overrides)
    check_folder(run)
    with new_folder(run, holds_distillation):
        distill(settings, run, teachers, distillation)


def _search_of(teacher, options):
    """Returns the beam that the options describe; without options, the teacher's, if it has one."""
    from keras_transformer.decoding import Beam
    from keras_transformer.tasks.run import Run

    if all(value is None for value in options.values()):
        own = Run(teacher).read_search()
        if isinstance(own, Beam):
            name_default(teacher, own, "--beam and the options that need it")
            return own
    return make_search(**{**options, "beam": options["beam"] or SIZE})
