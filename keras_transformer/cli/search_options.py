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
SEARCHES = (*BEAMS, "n_best", "sample", *SAMPLE_ONLY)

UNLIMITED = 100_000  # tokens: more than any output has

BEAM = click.option(
    "--beam",
    type=click.IntRange(1),
    metavar="N",
    help="Search with N hypotheses at a time; the paper's N is 4. Default: greedy search.",
)
LENGTH_PENALTY = click.option(
    "--length-penalty",
    type=FiniteRange(0),
    metavar="A",
    help="With --beam: divide scores by ((5 + length) / 6) ** A.  [default: 0.6]",
)
ALL = [
    BEAM,
    LENGTH_PENALTY,
    click.option(
        "--normalization",
        type=click.Choice(["gnmt", "power", "average", "none"]),
        help="With --beam: divide scores by the penalty of --length-penalty, by length ** A with "
        "its A, by the length, or by nothing.  [default: gnmt]",
    ),
    click.option(
        "--min-length",
        type=click.IntRange(1),
        metavar="TOKENS",
        help="With --beam: shortest output, the end of the sentence included.  [default: 1]",
    ),
    click.option(
        "--extra-length",
        type=click.IntRange(0),
        metavar="TOKENS",
        help="With --beam: how much longer than its source an output may be.  [default: 50]",
    ),
    click.option(
        "--max-output",
        type=click.IntRange(1),
        metavar="TOKENS",
        help="With --beam: longest output, its end included, whatever the source.  [default: none]",
    ),
    click.option(
        "--stopping",
        type=click.Choice(["count", "score", "narrow"]),
        help="With --beam: end when N hypotheses have ended, or when the best running one is no "
        "better than the worst of these, as Hugging Face's generate does; or as count, with "
        "a beam that each of them leaves narrower, as in Marian.  [default: count]",
    ),
    click.option(
        "--n-best",
        type=click.IntRange(1),
        metavar="M",
        help="Write the best M translations of each line: number of the line, from 1, tab, score, "
        "tab, text; the best first, fewer where there are fewer. Without --beam, with one of 4, or "
        "of M.",
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


def beam_options(command):
    """Gives a command the options of a beam, but for its size."""
    for option in reversed(ALL[1:7]):
        command = option(command)
    return command


def line_of(search):
    """Returns the options of a command that make a `Greedy` or `Beam`, each after a space."""
    from keras_transformer.decoding import Beam

    if not isinstance(search, Beam):
        return ""
    values = {
        "beam": search.size,
        "normalization": search.normalization,
        "length-penalty": f"{search.length_penalty:g}",
        "stopping": search.stopping,
        "extra-length": UNLIMITED if search.extra_length is None else search.extra_length,
        "max-output": search.max_length,
    }
    return "".join(f" --{name} {value}" for name, value in values.items() if value is not None)


def make_search(beam=None, n_best=None, sample=False, **settings):
    """Returns the search that the options of a command describe, as far as it has them.

    Args:
        beam: Value of `--beam`.
        n_best: Value of `--n-best`, where that asks for a beam.
        sample: Value of `--sample`.
        **settings: Values of the other options of a search, by name; `None`: not given.

    Raises:
        click.UsageError: If an option has no effect beside the others.
    """
    from keras_transformer.decoding import Beam, Greedy, Sample

    if sample:
        refuse((*BEAMS, "n_best"), "has no effect with --sample.")
    else:
        refuse(SAMPLE_ONLY, "needs --sample.")
    if beam is None and n_best is None:
        refuse(BEAM_ONLY, "needs --beam.")
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
    if beam is None and n_best is None:
        return Greedy()
    return Beam(max(4, n_best) if beam is None else beam, **settings)
