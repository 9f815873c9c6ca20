"""Settings of the searches, declared once: defaults, limits and help, without TensorFlow.

`Greedy`, `Beam` and `Sample` have them as fields and check them; the command line and the exports
make their options of them.
"""

import dataclasses
import math
import numbers

from keras_transformer.checks import check_choice, is_integer

# Scores are divided by one of these functions of a length, the end included, and an exponent. Both
# are numbers, or floating tensors. The first is Eq. 14 of Wu et al. (2016), without coverage.
NORMALIZATIONS = {
    "gnmt": lambda length, exponent: ((5.0 + length) / 6.0) ** exponent,
    "power": lambda length, exponent: length**exponent,
    "average": lambda length, exponent: length,
    "none": lambda length, exponent: 1.0,
}
WITH_EXPONENT = ("gnmt", "power")  # those that depend on the exponent
STOPPINGS = ("count", "score", "narrow")
UNLIMITED = 2**30  # tokens, more than any output has; the sum with a length fits into 32 bits


@dataclasses.dataclass(frozen=True)
class SearchSetting:
    """The values of one field of a search, and its option on the command line.

    Args:
        help: What it does, one sentence or more.
        kind: `int`, `float` or `str`.
        least, most: Smallest and largest number. `None`: there is no such limit.
        choices: The strings it may be.
        is_optional: Whether it may be `None`.
        shape: Shape of the tensor that it may be in a graph. `None`: it is no tensor.
        option: Name of its option. `None`: that of the field.
        metavar: Placeholder of the value in the help.
        default_help: What the option's help names as the default. `None`: the field's default.
        rule: What it must be, for errors. `None`: made of the limits.
    """

    help: str
    kind: type = int
    least: float | None = None
    most: float | None = None
    choices: tuple = ()
    is_optional: bool = False
    shape: tuple | None = None
    option: str | None = None
    metavar: str | None = None
    default_help: str | None = None
    rule: str | None = None

    def check(self, name, value):
        """Raises a `ValueError` unless a value is one of these; `name` is what an error calls it.

        A value that may be a tensor is right if it is one: its numbers are not known yet.
        """
        if value is None and self.is_optional:
            return
        if self.shape is not None and _is_tensor(value):
            return
        if self.choices:
            check_choice(name, value, self.choices)
        elif not self._is_right(value):
            raise ValueError(f"`{name}` must be {self._rule()}. Received: {name}={value!r}.")

    def _is_right(self, value):
        if self.kind is int and not is_integer(value) or not isinstance(value, numbers.Real):
            return False
        least = -math.inf if self.least is None else self.least
        most = math.inf if self.most is None else self.most
        return least <= value <= most and math.isfinite(value)

    def _rule(self):
        if self.rule is not None:
            return self.rule
        number = "an integer of " if self.kind is int else ""
        finite = "" if self.kind is int else " and finite"
        limits = f"{number}at least {self.least}{finite}"
        if self.most is not None:
            limits = f"between {self.least} and {self.most}"
        return f"{limits}, or None" if self.is_optional else limits


def _is_tensor(value):
    """Tells a tensor from other values, without the import of TensorFlow."""
    return hasattr(value, "dtype") and not isinstance(value, numbers.Number)


def setting(default, help, **limits):
    """Returns a field of a dataclass with a default and a `SearchSetting` of other arguments."""
    metadata = {"setting": SearchSetting(help, **limits)}
    return dataclasses.field(default=default, metadata=metadata)


def settings_of(search):
    """Returns the `SearchSetting`s of a search or of its class, by the names of their fields."""
    return {field.name: field.metadata["setting"] for field in dataclasses.fields(search)}


def check_numbers(kind, **values):
    """Checks arguments by the settings of the same names, as far as they are plain numbers.

    Args:
        kind: One of the classes below.
        **values: The arguments; tensors, lists and `None` are not checked.
    """
    settings = settings_of(kind)
    for name, value in values.items():
        if isinstance(value, numbers.Number):
            settings[name].check(name, value)


class SearchSettings:
    """Settings that are checked when they are made."""

    def __post_init__(self):
        for name, value in settings_of(self).items():
            value.check(name, getattr(self, name))


@dataclasses.dataclass(frozen=True)
class GreedySettings(SearchSettings):
    """The fields of `Greedy`."""

    max_length: int | None = setting(
        None,
        "Longest output, the end of the text included, whatever the source.",
        least=1,
        is_optional=True,
        option="max-output",
        metavar="TOKENS",
        default_help="none; of --greedy that of the run's own search",
    )


@dataclasses.dataclass(frozen=True)
class BeamSettings(SearchSettings):
    """The fields of `Beam`."""

    size: int = setting(
        4,
        "Search with N hypotheses at a time; the paper's N is 4.",
        least=1,
        option="beam",
        metavar="N",
        default_help="the run's own search, or greedy search",
    )
    length_penalty: float = setting(
        0.6,
        "Exponent A of the length penalty, see --normalization.",
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
        "Shortest output, the end of the text included.",
        least=1,
        shape=(),
        metavar="TOKENS",
    )
    extra_length: int | None = setting(
        50,
        "How much longer than its source an output may be.",
        least=0,
        is_optional=True,
        shape=(),
        metavar="TOKENS",
    )
    max_length: int | None = setting(
        None,
        "Longest output, the end of the text included, whatever the source.",
        least=1,
        is_optional=True,
        shape=(),
        option="max-output",
        metavar="TOKENS",
        default_help="none; of --greedy that of the run's own search",
    )
    stopping: str = setting(
        "count",
        "End when N hypotheses have ended (count); when also the best running one is no better "
        "than the worst of these, as in Hugging Face's generate (score); or as count, with a beam "
        "that shrinks by one for every finished hypothesis, as in Marian (narrow).",
        kind=str,
        choices=STOPPINGS,
    )

    @property
    def has_exponent(self):
        """`True` if `length_penalty` has an effect."""
        return self.normalization in WITH_EXPONENT


@dataclasses.dataclass(frozen=True)
class SampleSettings(SearchSettings):
    """The fields of `Sample`."""

    temperature: float = setting(
        1.0,
        "Values below 1 favour likely tokens; 0 is greedy search.",
        kind=float,
        least=0,
        shape=(),
    )
    top_k: int = setting(
        0, "Draw from the K most likely tokens; 0: from all.", least=0, shape=(), metavar="K"
    )
    top_p: float = setting(
        1.0,
        "Draw from the most likely tokens that have the probability P together.",
        kind=float,
        least=0,
        most=1,
        shape=(),
        metavar="P",
    )
    seed: int = setting(
        0,
        "The same seed gives the same line the same output.",
        least=-(2**31),
        most=2**31 - 1,
        shape=(None, 2),
        rule="an integer of 32 bits",
    )
