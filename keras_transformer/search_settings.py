"""Settings of the searches: defaults, limits and help texts, declared once.

The settings are the fields of the searches, which check them. The options of the command line are
derived from them. The options of exports are declared in the same way. The module does not import
TensorFlow.
"""

import dataclasses
import math
import numbers
from collections.abc import Callable
from typing import Any, ClassVar

from keras_transformer.checks import check_choice, is_integer

# The score of an output is divided by one of these functions of its length, which includes the end
# token, and of an exponent. Both are numbers or floating-point tensors. "gnmt" is Eq. 14 of Wu et
# al. (2016) without the coverage penalty.
NORMALIZATIONS = {
    "gnmt": lambda length, exponent: ((5.0 + length) / 6.0) ** exponent,
    "power": lambda length, exponent: length**exponent,
    "average": lambda length, exponent: length,
    "none": lambda length, exponent: 1.0,
}
WITH_EXPONENT = ("gnmt", "power")  # normalizations that use the exponent
STOPPINGS = ("count", "score", "narrow")
NAMES: dict[Any, str] = {  # of kinds of values without limits
    str: "a string",
    bool: "True or False",
    tuple: "a list or tuple of integers",
}
LEAST_RATIO = 0.1  # of the length of an output to that of its source
UNLIMITED = 2**30  # tokens, longer than any output; adding a length does not overflow 32 bits


@dataclasses.dataclass(frozen=True)
class FieldSetting:
    """Values that a field of a search or an export accepts, and its option on the command line.

    Args:
        help: Description of the field in one or more sentences.
        kind: Type of the value: `int`, `float`, `str`, `bool`, or `tuple` for increasing numbers.
            `None`: any value, checked where it is used.
        least, most: Smallest and largest number. `None`: no limit.
        above: Number that a value exceeds. `None`: no limit.
        choices: Accepted strings. Empty: any.
        is_optional: Whether `None` is accepted.
        shape: Shape of the tensor that a graph accepts. `None`: tensors are not accepted.
        option: Name of the option. `None`: the name of the field.
        metavar: Placeholder of the value in the help text of the option.
        default_help: Default that the help text names, or a function that returns it for a class
            with the field. `None`: the default of the field.
        rule: Rule that error messages state. `None`: derived from the limits.
        group: Heading of the option in `--help`. `None`: that of searches; an export has no option
            for the field.
        given: Value of an option that is a flag, if it is not `True`.
        is_percentage: Whether the option is 100 times the value.
        needs: Kind of model that the field has an effect on. `None`: every model.
        requires: Name of a field without which this one has no effect. `None`: there is none.
        excludes: Name of a field with which this one has no effect. `None`: there is none.
        placeholder: Value that stands for all others when searches share a graph, which at the
            default leaves the field out. `None`: a graph takes every value of the field.
    """

    help: str
    kind: type | None = int
    least: float | None = None
    most: float | None = None
    above: float | None = None
    choices: tuple = ()
    is_optional: bool = False
    shape: tuple | None = None
    option: str | None = None
    metavar: str | None = None
    default_help: "str | Callable[[Any], str] | None" = None
    rule: str | None = None
    group: str | None = None
    given: Any = None
    is_percentage: bool = False
    needs: str | None = None
    requires: str | None = None
    excludes: str | None = None
    placeholder: Any = None

    def check(self, name, value) -> None:
        """Raises a `ValueError` that begins with `name` unless `value` is accepted.

        Where tensors are accepted, every tensor is: its numbers are not known yet.
        """
        if self.kind is None or value is None and self.is_optional:
            return
        if self.shape is not None and is_tensor(value):
            return
        if self.choices:
            check_choice(name, value, self.choices)
        elif not self._is_accepted(value):
            raise ValueError(f"`{name}` must be {self._rule()}. Received: {name}={value!r}.")

    def _is_accepted(self, value):
        if self.kind is tuple:
            return isinstance(value, list | tuple)
        if self.kind in (str, bool):
            return isinstance(value, self.kind)
        if self.kind is int and not is_integer(value) or not isinstance(value, numbers.Real):
            return False
        if self.above is not None and not value > self.above:
            return False
        least = -math.inf if self.least is None else self.least
        most = math.inf if self.most is None else self.most
        return least <= value <= most and math.isfinite(value)

    def _rule(self):
        if self.rule is not None:
            return self.rule
        if self.kind in NAMES:
            limits = NAMES[self.kind]
            return f"{limits}, or None" if self.is_optional else limits
        number = "an integer of " if self.kind is int else ""
        finite = "" if self.kind is int else " and finite"
        limits = f"{number}at least {self.least}{finite}"
        if self.above is not None:
            limits = f"above {self.above}{finite}"
        if self.most is not None:
            limits = f"between {self.least} and {self.most}"
        return f"{limits}, or None" if self.is_optional else limits


def is_tensor(value) -> bool:
    """Returns whether a value is a tensor, without importing TensorFlow."""
    return hasattr(value, "dtype") and not isinstance(value, numbers.Number)


def setting(default, help, kw_only=False, **limits) -> Any:
    """Returns a dataclass field with a `FieldSetting`.

    Args:
        default: Default of the field.
        help: See `FieldSetting`.
        kw_only: Whether the field is a keyword of the constructor only.
        **limits: The other arguments of the `FieldSetting`.
    """
    metadata = {"setting": FieldSetting(help, **limits)}
    return dataclasses.field(default=default, metadata=metadata, kw_only=kw_only)


def repetition_penalty(placeholder: float | None = None) -> Any:
    """Returns the field with the penalty of tokens that an output already contains.

    Args:
        placeholder: See `FieldSetting`.
    """
    return setting(
        1.0,
        "Penalty of tokens that an output or its prompt already contains: positive logits are "
        "divided by P, and negative logits are multiplied by P. 1 penalises no token.",
        kw_only=True,
        kind=float,
        above=0,
        shape=(),
        metavar="P",
        placeholder=placeholder,
    )


def length_ratio() -> Any:
    """Returns the field with the maximum length of an output over that of its source."""
    return setting(
        None,
        "Maximum number of new tokens of an output, divided by the number of tokens of its source. "
        "Both numbers include the end token, and the maximum is rounded up. A beam adds "
        "--extra-length.",
        kw_only=True,
        kind=float,
        least=LEAST_RATIO,
        is_optional=True,
        metavar="R",
        default_help="none",
    )


def length_limit(placeholder: int | None = None) -> Any:
    """Returns the field with the maximum number of new tokens of an output.

    Args:
        placeholder: See `FieldSetting`.
    """
    return setting(
        None,
        "Maximum number of new tokens of an output, including its end token. The tokens of a "
        "prompt and a language token at the beginning do not count. The maximum length of the "
        "model always applies as well.",
        least=1,
        is_optional=True,
        shape=(),
        option="max-output",
        metavar="TOKENS",
        default_help="none; with --greedy and --ctc the limit of the run's own search",
        placeholder=placeholder,
    )


def settings_of(search) -> dict[str, Any]:
    """Returns a dictionary from the fields of a value of settings, or its class, to settings."""
    fields = dataclasses.fields(search)
    return {field.name: field.metadata["setting"] for field in fields if field.metadata}


class CheckedSettings:
    """Settings that are checked when an object is created."""

    def __post_init__(self) -> None:
        for name, setting in settings_of(self).items():
            setting.check(name, value := getattr(self, name))
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        self.check_together()

    def check_together(self) -> None:
        """Raises a `ValueError` if a value has no effect with the others."""
        for name, setting in settings_of(self).items():
            if setting.requires is None and setting.excludes is None or not self._is_given(name):
                continue
            if setting.requires is not None and not self._is_given(setting.requires):
                reason = f"needs `{setting.requires}`"
            elif setting.excludes is not None and self._is_given(setting.excludes):
                reason = f"has no effect with `{setting.excludes}`"
            else:
                continue
            raise ValueError(f"`{name}` {reason}. Received: {name}={getattr(self, name)!r}.")

    def given(self) -> dict[str, Any]:
        """Returns the values that differ from their defaults, by name."""
        return {name: getattr(self, name) for name in settings_of(self) if self._is_given(name)}

    def _is_given(self, name):
        return getattr(self, name) != getattr(type(self), name)


class SearchSettings(CheckedSettings):
    """Base class of the settings of searches.

    Attributes:
        word: Name of the search: its option on the command line, and its kind in files.
    """

    word: ClassVar[str]


@dataclasses.dataclass(frozen=True)
class GreedySettings(SearchSettings):
    """Fields of `Greedy`."""

    word: ClassVar[str] = "greedy"

    max_length: int | None = length_limit(UNLIMITED)
    max_length_ratio: float | None = length_ratio()
    repetition_penalty: float = repetition_penalty(2.0)


@dataclasses.dataclass(frozen=True)
class BestPathSettings(SearchSettings):
    """Fields of `BestPath`."""

    word: ClassVar[str] = "ctc"

    max_length: int | None = length_limit(UNLIMITED)


@dataclasses.dataclass(frozen=True)
class BeamSettings(SearchSettings):
    """Fields of `Beam`."""

    word: ClassVar[str] = "beam"

    size: int = setting(
        4,
        "Use beam search with N hypotheses; the paper uses 4.",
        least=1,
        option="beam",
        metavar="N",
        default_help="the run's own search, or greedy search",
    )
    length_penalty: float = setting(
        0.6,
        "Exponent A of the length penalty; see --normalization.",
        kind=float,
        least=0,
        shape=(),
        metavar="A",
    )
    normalization: str = setting(
        "gnmt",
        "Divide scores by ((5 + length) / 6) ** A, by length ** A, by the length, or by nothing.",
        kind=str,
        choices=tuple(NORMALIZATIONS),
    )
    min_length: int = setting(
        1,
        "Minimum number of new tokens of an output, counted like --max-output.",
        least=1,
        shape=(),
        metavar="TOKENS",
    )
    extra_length: int | None = setting(
        50,
        "Number of tokens by which the new part of an output may exceed the length of its source "
        "or, with --max-length-ratio R, R times this length.",
        least=0,
        is_optional=True,
        shape=(),
        metavar="TOKENS",
    )
    max_length: int | None = length_limit()
    stopping: str = setting(
        "count",
        "Condition that ends the search. count: N hypotheses are finished. score: in addition, no "
        "running hypothesis is better than the worst finished one, as in Hugging Face's generate. "
        "narrow: as count, but the beam shrinks by one for every finished hypothesis, as in "
        "Marian.",
        kind=str,
        choices=STOPPINGS,
    )
    max_length_ratio: float | None = length_ratio()
    repetition_penalty: float = repetition_penalty(2.0)

    @property
    def has_exponent(self) -> bool:
        """`True` if `length_penalty` has an effect."""
        return self.normalization in WITH_EXPONENT


@dataclasses.dataclass(frozen=True)
class SampleSettings(SearchSettings):
    """Fields of `Sample`."""

    word: ClassVar[str] = "sample"

    temperature: float = setting(
        1.0,
        "Temperature of the softmax. Values below 1 favour likely tokens; 0 is greedy search.",
        kind=float,
        least=0,
        shape=(),
        metavar="T",
    )
    top_k: int = setting(
        0,
        "Draw from the K most likely tokens only; 0: no limit.",
        least=0,
        most=2**31 - 1,
        shape=(),
        metavar="K",
        rule="an integer of at least 0 and below 2**31",
    )
    top_p: float = setting(
        1.0,
        "Draw from the smallest set of most likely tokens whose probabilities add up to P.",
        kind=float,
        least=0,
        most=1,
        shape=(),
        metavar="P",
    )
    seed: int = setting(
        0,
        "Seed of the random numbers; the same seed, line and line number give the same output.",
        least=-(2**31),
        most=2**31 - 1,
        shape=(None, 2),
        metavar="SEED",
        rule="an integer of 32 bits",
    )
    max_length: int | None = length_limit()
    min_p: float = setting(
        0.0,
        "Draw from the tokens whose probability is at least P times the probability of the "
        "most likely token.",
        kw_only=True,
        kind=float,
        least=0,
        most=1,
        shape=(),
        metavar="P",
    )
    max_length_ratio: float | None = length_ratio()
    repetition_penalty: float = repetition_penalty()


# Settings of each search by the option of the command line that chooses it.
KINDS = {
    kind.word: kind for kind in (BeamSettings, GreedySettings, BestPathSettings, SampleSettings)
}
