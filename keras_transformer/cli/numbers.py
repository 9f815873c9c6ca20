"""Parameters that are numbers; help texts and errors name their limits in words."""

import math
from typing import Any

import click

OF_THE_TYPE = 2**31 - 1  # limits as large as this are those of 32 bits, which no help names


class LimitedNumber(click.ParamType):
    """A finite number within limits.

    Args:
        kind: `int` or `float`.
        least, most: Limits that the number may reach. `None`: no limit.
        above: Limit that the number must exceed, in place of `least`. `None`: no limit.
    """

    name = "number"

    def __init__(self, kind, least=None, most=None, *, above=None):
        self._type = click.INT if kind is int else click.FLOAT
        self._least, self._most, self._above = least, most, above

    @property
    def limits(self) -> str:
        """The limits for a help text, such as `"at least 1"`; `""` without limits."""
        shown = (
            None if limit is None or abs(limit) >= OF_THE_TYPE else limit
            for limit in (self._least, self._most, self._above)
        )
        return _in_words(*shown)

    def convert(self, value, param, ctx) -> Any:
        """Returns the number."""
        number = self._type.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", param, ctx)
        if not self._allows(number):
            limits = _in_words(self._least, self._most, self._above)
            self.fail(f"must be {limits}. Received: {_shown(number)}.", param, ctx)
        return number

    def _allows(self, number):
        return (
            (self._least is None or number >= self._least)
            and (self._above is None or number > self._above)
            and (self._most is None or number <= self._most)
        )


def _in_words(least, most, above):
    """Returns limits in words; `""` if all are `None`."""
    if least is not None and most is not None:
        return f"from {_shown(least)} to {_shown(most)}"
    words = [
        f"{name} {_shown(limit)}"
        for name, limit in (("at least", least), ("above", above), ("at most", most))
        if limit is not None
    ]
    return " and ".join(words)


def _shown(limit):
    return str(limit) if isinstance(limit, int) else f"{limit:g}"
