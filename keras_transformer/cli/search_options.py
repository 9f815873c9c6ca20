"""The options that choose a search, and the search that they make."""

import math

import click

from keras_transformer.cli.command import FiniteRange, refuse

# What belongs to a search: without it the option has no effect.
BEAM_ONLY = (
    "length_penalty", "normalization", "min_length", "extra_length", "max_output", "stopping",
)  # fmt: skip
SAMPLE_ONLY = ("temperature", "top_k", "top_p", "seed")
BEAMS = ("beam", *BEAM_ONLY)
SEARCHES = ("greedy", *BEAMS, "n_best", "sample", *SAMPLE_ONLY)
OF_GREEDY_OR_BEAM = ("greedy", *BEAMS)  # parameters of the commands that have no more

UNLIMITED = 100_000  # tokens: more than any output has

BEAM = click.option(
    "--beam",
    type=click.IntRange(1),
    metavar="N",
    help="Search with N hypotheses at a time; the paper's N is 4. Default: the run's own search, "
    "or greedy search.",
)
GREEDY = click.option("--greedy", is_flag=True, help="Greedy search, whatever the run's own is.")
LENGTH_PENALTY = click.option(
    "--length-penalty",
    type=FiniteRange(0),
    metavar="A",
    help="With --beam: divide scores by ((5 + length) / 6) ** A.  [default: 0.6]",
)
GREEDY_OR_BEAM = {
    "greedy": GREEDY,
    "beam": BEAM,
    "length_penalty": LENGTH_PENALTY,
    "normalization": click.option(
        "--normalization",
        type=click.Choice(["gnmt", "power", "average", "none"]),
        help="With --beam: divide scores by the penalty of --length-penalty, by length ** A with "
        "its A, by the length, or by nothing.  [default: gnmt]",
    ),
    "min_length": click.option(
        "--min-length",
        type=click.IntRange(1),
        metavar="TOKENS",
        help="With --beam: shortest output, the end of the sentence included.  [default: 1]",
    ),
    "extra_length": click.option(
        "--extra-length",
        type=click.IntRange(0),
        metavar="TOKENS",
        help="With --beam: how much longer than its source an output may be.  [default: 50]",
    ),
    "max_output": click.option(
        "--max-output",
        type=click.IntRange(1),
        metavar="TOKENS",
        help="With --beam or --greedy: longest output, its end included, whatever the source.  "
        "[default: none; of --greedy that of the run's own search]",
    ),
    "stopping": click.option(
        "--stopping",
        type=click.Choice(["count", "score", "narrow"]),
        help="With --beam: end when N hypotheses have ended, or when the best running one is no "
        "better than the worst of these, as Hugging Face's generate does; or as count, with "
        "a beam that each of them leaves narrower, as in Marian.  [default: count]",
    ),
}
ALL = [
    *GREEDY_OR_BEAM.values(),
    click.option(
        "--n-best",
        type=click.IntRange(1),
        metavar="M",
        help="Write the best M translations of each line: number of the line, from 1, tab, score, "
        "tab, text; the best first, fewer where there are fewer. Without --beam, with the run's "
        "own or one of 4, of M hypotheses if that is more.",
    ),
    click.option("--sample", is_flag=True, help="Draw translations at random."),
    click.option(
        "--temperature",
        type=FiniteRange(0),
        help="With --sample: below 1 nearer to the most probable tokens; 0 is greedy.  "
        "[default: 1]",
    ),
    click.option(
        "--top-k",
        type=click.IntRange(0),
        metavar="K",
        help="With --sample: draw from the K most probable tokens; 0: from all.  [default: 0]",
    ),
    click.option(
        "--top-p",
        type=FiniteRange(0, 1),
        metavar="P",
        help="With --sample: draw from the most probable tokens that have together the probability "
        "P.  [default: 1]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(-(2**31), 2**31 - 1),
        help="With --sample: the same seed gives the same line the same translation.  [default: 0]",
    ),
]


def search_options(command):
    """Gives a command every option of a search."""
    for option in reversed(ALL):
        command = option(command)
    return command


def greedy_or_beam(*without):
    """Returns a decorator for the options of greedy search and of a beam.

    Args:
        *without: Names of those that the command does not have, or has in another form.
    """

    def add(command):
        for name, option in reversed(GREEDY_OR_BEAM.items()):
            command = command if name in without else option(command)
        return command

    return add


def line_of(search):
    """Returns the options of a command that make a `Greedy` or `Beam`, each after a space."""
    from keras_transformer.decoding import Beam

    if not isinstance(search, Beam):
        longest = search.max_length
        return "" if longest is None else f" --greedy --max-output {longest}"
    values = {
        "beam": search.size,
        "normalization": search.normalization,
        "length-penalty": f"{search.length_penalty:g}",
        "stopping": search.stopping,
        "extra-length": UNLIMITED if search.extra_length is None else search.extra_length,
        "max-output": search.max_length,
    }
    return "".join(f" --{name} {value}" for name, value in values.items() if value is not None)


def make_search(beam=None, n_best=None, sample=False, greedy=False, **settings):
    """Returns the search that the options of a command describe, as far as it has them.

    Args:
        beam: Value of `--beam`.
        n_best: Value of `--n-best`, where several are asked for.
        sample: Value of `--sample`.
        greedy: Value of `--greedy`.
        **settings: Values of the other options of a search, by name; `None`: not given.

    Returns:
        The search; `None` if no option names one.

    Raises:
        click.UsageError: If an option has no effect beside the others.
    """
    from keras_transformer.decoding import Beam, Greedy, Sample

    if greedy:
        others = [name for name in BEAMS if name != "max_output"]
        refuse((*others, "n_best", "sample"), "has no effect with --greedy.")
    if sample:
        refuse((*BEAMS, "n_best"), "has no effect with --sample.")
    else:
        refuse(SAMPLE_ONLY, "needs --sample.")
    if beam is None and n_best is None and not greedy:
        refuse([name for name in BEAM_ONLY if name != "max_output"], "needs --beam.")
        refuse(["max_output"], "needs --beam or --greedy.")
    normalization = settings.get("normalization")
    if normalization in ("average", "none"):
        refuse(["length_penalty"], f"has no effect with --normalization {normalization}.")
    if beam is not None and (n_best or 0) > beam:
        raise click.UsageError(
            f"--n-best {n_best} needs a beam of as many hypotheses. Received: --beam {beam}."
        )
    settings = {name: value for name, value in settings.items() if value is not None}
    settings |= {"max_length": settings.pop("max_output")} if "max_output" in settings else {}
    if settings.get("min_length", 1) > settings.get("max_length", math.inf):
        raise click.UsageError(
            "--max-output must be at least --min-length. Received: "
            f"{settings['max_length']} and {settings['min_length']}."
        )
    if sample:
        return Sample(**settings)
    if greedy:
        return Greedy(**settings)
    if beam is None and not settings:
        return None
    return Beam(max(4, n_best) if beam is None else beam, **settings)


def taken_search(options):
    """Returns what `make_search` makes of those of `OF_GREEDY_OR_BEAM`, and removes these.

    Args:
        options: Dictionary of the values of a command's options.
    """
    return make_search(**{name: options.pop(name) for name in OF_GREEDY_OR_BEAM if name in options})


def search_of_run(run, options):
    """Returns what `taken_search` does, or where no option names a search that of a run.

    Args:
        run: The folder, or a list of several; if they name different searches, it is greedy search.
        options: See `taken_search`.
    """
    from keras_transformer.decoding import Greedy

    search, searches = taken_search(options), _searches_of(run)
    own = searches.pop() if len(searches) == 1 else Greedy()
    if search is None:
        name_default(run, own)
        return own
    return limited(search, own)


def limited(search, own):
    """Returns a search that options name for a run; a greedy one keeps the limit of its own.

    Args:
        search: The `Greedy`, `Beam` or `Sample`.
        own: The run's `Greedy` or `Beam`.
    """
    from keras_transformer.decoding import Greedy

    if isinstance(search, Greedy) and search.max_length is None:
        return Greedy(own.max_length)
    return search


def name_default(run, search, others="--greedy and --beam"):
    """Prints on stderr how a run is searched where no option names a search, but for greedily.

    Args:
        run: The folder, or a list of several.
        search: How it is searched: its own search, or one for more outputs.
        others: The options that replace it.
    """
    from keras_transformer.decoding import Greedy

    folders = run if isinstance(run, list) else [run]
    name, several = " and ".join(map(str, folders)), len(folders) > 1
    own = _searches_of(run)
    if len(own) > 1:
        how = "greedily" if isinstance(search, Greedy) else f"with {search}"
        says = f"are searched {how}, since their search.json differ. {others} replace it."
    elif isinstance(own.pop(), Greedy):
        return
    else:
        says = "are searched as their" if several else "is searched as its"
        says = f"{says} search.json says: {search}. {others} replace it."
    click.echo(f"{name} {says}", err=True)


def _searches_of(run):
    """The set of searches that one or several runs name; greedy search is that of one without."""
    from keras_transformer.decoding import Greedy
    from keras_transformer.run import Run

    folders = run if isinstance(run, list) else [run]
    return {Run(folder).read_search() or Greedy() for folder in folders}
