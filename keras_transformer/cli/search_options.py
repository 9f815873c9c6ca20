"""Options that choose a search, derived from its settings, and the search that they describe."""

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from keras_transformer.cli.command import refuse
from keras_transformer.cli.help import add_options, count, option
from keras_transformer.cli.numbers import LimitedNumber
from keras_transformer.search_settings import (
    KINDS,
    WITH_EXPONENT,
    settings_of,
)

if TYPE_CHECKING:
    from keras_transformer.decoding import Beam, BestPath, Greedy, Sample

NO_LIMIT = "none"  # value of an option that sets `None`; parsed as infinity


def _options():
    """Returns for each option of a setting a dictionary from its `KINDS` to its field there."""
    options = {}
    for kind, settings in KINDS.items():
        for field, setting in settings_of(settings).items():
            name = (setting.option or field).replace("-", "_")
            options.setdefault(name, {})[kind] = field
    return options


OPTIONS = _options()
BEAMS = tuple(name for name, kinds in OPTIONS.items() if "beam" in kinds)
OF_GREEDY_OR_BEAM = ("greedy", *BEAMS, "ctc")  # options of the commands that do not sample
OF_SAMPLES = tuple(name for name in OPTIONS if name not in BEAMS)
SAMPLING = ("sample", *OF_SAMPLES)  # options that only sampling has
SEARCHES = (*OF_GREEDY_OR_BEAM, "n_best", *SAMPLING)

GREEDY = option(
    "--greedy",
    is_flag=True,
    group="Search",
    help="Use greedy search, even if the run has a different search.",
)
CTC = option(
    "--ctc",
    is_flag=True,
    group="Search",
    help="In speech recognition: take the best path of CTC, which needs only the encoder. The run "
    "must have been trained with training.ctc_weight.",
)
SAMPLE = option("--sample", is_flag=True, group="Sampling", help="Draw outputs at random.")


class OrNone(click.ParamType):
    """A parameter that is a number, or `none` for no limit.

    Args:
        numbers: The `LimitedNumber`.
    """

    name = "number or none"

    def __init__(self, numbers):
        self._numbers = numbers

    @property
    def limits(self) -> str:
        """See `LimitedNumber`."""
        return self._numbers.limits

    def convert(self, value, param, ctx) -> Any:  # noqa: D102
        if value in (NO_LIMIT, math.inf):
            return math.inf
        return self._numbers.convert(value, param, ctx)


def option_of(name, help=None, default=None) -> Callable[[Any], Any]:
    """Returns the click option of a setting.

    Args:
        name: A key of `OPTIONS`.
        help: Help text of a command for which the option has another meaning. `None`: the help of
            the setting.
        default: Default that the help names. `None`: the default of the setting.
    """
    kind, field = next(iter(OPTIONS[name].items()))
    setting = settings_of(KINDS[kind])[field]
    others = _either(OPTIONS[name])
    rest = setting.help[0].lower() + setting.help[1:]
    text = setting.help if name == kind else f"With {others}: {rest}"
    own = getattr(KINDS[kind], field, None)
    shown = f"{own:g}" if isinstance(own, float) else own
    default = default or setting.default_help or shown
    limitless = f" {NO_LIMIT}: no limit." if _takes_none(setting, own) else ""
    return option(
        f"--{name.replace('_', '-')}",
        type=parameter_type(setting, own),
        argument=field,
        metavar=setting.metavar,
        group="Sampling" if set(OPTIONS[name]) == {"sample"} else "Search",
        help=f"{help or text}{limitless}  [default: {default}]",
    )


def _either(kinds):
    """Returns the options of kinds of searches as text, such as `--beam, --greedy or --ctc`."""
    *others, last = (f"--{kind}" for kind in kinds)
    return f"{', '.join(others)} or {last}" if others else last


def _takes_none(setting, default):
    return setting.is_optional and default is not None


def parameter_type(setting, default) -> Any:
    """Returns the type of a click option for the values of a `FieldSetting` with this default."""
    if setting.choices:
        return click.Choice(setting.choices)
    if setting.kind is str:
        return click.STRING
    scale = 100 if setting.is_percentage else 1
    limits = (
        None if limit is None else scale * limit
        for limit in (setting.least, setting.most, setting.above)
    )
    least, most, above = limits
    numbers = LimitedNumber(setting.kind, least, most, above=above)
    return OrNone(numbers) if _takes_none(setting, default) else numbers


def n_best(help, default=None) -> Callable[[Any], Any]:
    """Returns the option `--n-best`.

    Args:
        help: Sentence that says what the command uses the number for.
        default: Default that the help names. `None`: no default.
    """
    default = f"  [default: {default}]" if default else ""
    return count("--n-best", None, f"{help}{default}", "M", group="Search")


def search_options(command) -> Any:
    """Adds every option of a search to a command."""
    several = n_best(
        "Write up to M outputs of each line, the best first: line number counted from 1, tab, "
        "score, tab, text. Without --beam, a run uses as many hypotheses as its own beam, or "
        "4 if it has none, but at least M."
    )
    return add_options(command, greedy_or_beam(), CTC, several, sampling)


def sampling(command) -> Any:
    """Adds the options of sampling to a command."""
    return add_options(command, SAMPLE, *map(option_of, OF_SAMPLES))


def greedy_or_beam(*without) -> Callable[[Any], Any]:
    """Returns a decorator for the options of greedy search and of a beam.

    Args:
        *without: Options that the command does not have, or declares itself.
    """
    options = {"greedy": GREEDY, **{name: option_of(name) for name in BEAMS}}
    chosen = [decorator for name, decorator in options.items() if name not in without]
    return lambda command: add_options(command, *chosen)


def line_of(search) -> str:
    """Returns the command-line options that describe a `Greedy` or `Beam`, each after a space."""
    kind = search.word
    default = KINDS[kind]()
    parts = [" --greedy"] if kind == "greedy" and search != type(search)() else []
    for name, kinds in OPTIONS.items():
        if kind not in kinds or name == "length_penalty" and not search.has_exponent:
            continue
        value = getattr(search, kinds[kind])
        if name == kind or value != getattr(default, kinds[kind]):
            value = NO_LIMIT if value is None else value
            value = f"{value:g}" if isinstance(value, float) else value
            parts.append(f" --{name.replace('_', '-')} {value}")
    return "".join(parts)


def make_search(n_best=None, **options) -> "Beam | BestPath | Greedy | Sample | None":
    """Returns the search that the options of a command describe.

    Args:
        n_best: Value of `--n-best`, or `None`.
        **options: Values of `--greedy`, `--sample`, `--ctc` and the keys of `OPTIONS`, as far as
            the command has them. `None`: not given.

    Returns:
        The search; `None` if no option chooses one, as with `--n-best` alone.

    Raises:
        click.UsageError: If an option has no effect beside the others.
    """
    from keras_transformer.decoding import Beam, BestPath, Greedy, Sample

    size = options.get("beam")
    kinds = ("greedy", "ctc", "sample")
    kind = next((name for name in kinds if options.get(name)), None)
    if kind is not None:
        refuse([*kinds[kinds.index(kind) + 1 :], "n_best"], f"has no effect with --{kind}.")
    elif size is not None or n_best is not None:
        kind = "beam"
    _refuse_without_effect(kind)
    normalization = options.get("normalization")
    if normalization not in (None, *WITH_EXPONENT):
        refuse(["length_penalty"], f"has no effect with --normalization {normalization}.")
    if size is not None and (n_best or 0) > size:
        raise click.UsageError(
            f"--n-best {n_best} needs a beam of as many hypotheses. Received: --beam {size}."
        )
    if kind is None:
        return None
    values = {
        kinds[kind]: None if options[name] == math.inf else options[name]
        for name, kinds in OPTIONS.items()
        if kind in kinds and options.get(name) is not None
    }
    if kind == "beam" and not values:
        return None  # `--n-best` alone: the run's own search, which `search_for` widens
    shortest, longest = values.get("min_length") or 1, values.get("max_length") or math.inf
    if shortest > longest:
        raise click.UsageError(
            f"--max-output must be at least --min-length. Received: {longest} and {shortest}."
        )
    if kind == Beam.word:
        values = {"size": max(Beam.size, n_best or 0), **values}
    return {search.word: search for search in (Beam, BestPath, Greedy, Sample)}[kind](**values)


def _refuse_without_effect(chosen):
    """Refuses options that do not belong to the chosen kind of search, which may be `None`."""
    for name, kinds in OPTIONS.items():
        if chosen in kinds:
            continue
        if chosen is None or "beam" not in kinds:
            refuse([name], f"needs {_either(kinds)}.")
        else:
            refuse([name], f"has no effect with --{chosen}.")


def search_of_run(run, options) -> Any:
    """Returns the search that options choose, otherwise the run's own search.

    Args:
        run: Folder of the run, or a list of several. If the searches of several runs differ, greedy
            search takes their place.
        options: Dictionary of the values of a command's options. Those of the search are removed.
    """
    from keras_transformer.decoding import Greedy

    known = *OF_GREEDY_OR_BEAM, *SAMPLING
    chosen = {name: options.pop(name) for name in known if name in options}
    search, searches = make_search(**chosen), _searches_of(run)
    own = searches.pop() if len(searches) == 1 else Greedy()
    check_ctc(run, search)
    if search is None:
        name_default(run, own)
        return own
    return limited(search, own)


def check_ctc(run, search) -> None:
    """Raises `click.UsageError` if a search is one of CTC and a run was trained without it.

    Args:
        run: Folder of the run, or a list of several.
        search: The search, or `None`.
    """
    from keras_transformer.decoding import BestPath
    from keras_transformer.tasks.run import Run

    if not isinstance(search, BestPath):
        return
    for folder in run if isinstance(run, list) else [run]:
        if not Run(folder).read_setting("training", "ctc_weight"):
            raise click.UsageError(
                f"--ctc needs a run that was trained with training.ctc_weight, which {folder} was "
                "not."
            )


def limited(search, own) -> Any:
    """Returns a search that options chose; one without a beam gets the run's own length limit.

    Args:
        search: The chosen search.
        own: The run's own search.
    """
    from keras_transformer.decoding import BestPath, Greedy

    if isinstance(search, (Greedy, BestPath)) and search.max_length is None:
        return dataclasses.replace(search, max_length=own.max_length)
    return search


def name_default(run, search, others="--greedy and --beam") -> None:
    """Prints on stderr which search is used by default, unless it is greedy search.

    Args:
        run: Folder of the run, or a list of several.
        search: The search that is used: the run's own, or a wider one.
        others: Options that replace it.
    """
    from keras_transformer.decoding import Greedy

    folders = run if isinstance(run, list) else [run]
    name, several = " and ".join(map(str, folders)), len(folders) > 1
    own = _searches_of(run)
    if len(own) > 1:
        how = "greedily" if isinstance(search, Greedy) else f"with {search}"
        says = f"are searched {how}, since their own searches differ. {others} replace it."
    elif isinstance(own.pop(), Greedy):
        return
    else:
        verb = "are" if several else "is"
        says = f"{verb} searched by default with {search}. {others} replace it."
    click.echo(f"{name} {says}", err=True)


def _searches_of(run):
    """Returns the set of searches that runs name; a run that names none has greedy search."""
    from keras_transformer.decoding import Greedy
    from keras_transformer.tasks.run import Run

    folders = run if isinstance(run, list) else [run]
    return {Run(folder).read_search() or Greedy() for folder in folders}
