"""Short phrases in two languages, rendered from Unicode's locale data (CLDR, through Babel).

A phrase is drawn once, as a value (a date, an amount of money, a list of countries), and rendered
in both languages. The pairs are a translation task that can be learned exactly:

* The source text determines the target. If a source text could have two values, or one value in two
  formats ("May 4, 2025" is both the long and the medium date in English), only the first reading is
  drawn.
* Longer phrases consist of shorter ones: a list of countries before an amount of money, or an
  amount before a date in parentheses.
"""

import datetime
import functools
import itertools
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from babel import dates, lists, numbers, units

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.words import Words

MAX_CHARACTERS = 80  # maximum of each side: about 40 tokens of a vocabulary of 4,000

# Phrases are written as people type them: with plain spaces, and without marks of direction.
_AS_TYPED: dict[int, str | None] = {
    **dict.fromkeys(map(ord, "\u00a0\u2007\u2008\u2009\u200a\u202f"), " "),
    **dict.fromkeys(map(ord, "\u00ad\u061c\u200b\u200e\u200f")),
}

_DATE_LENGTHS = ("full", "long", "medium", "short")
_DATE_SKELETONS = ("yMMMM", "MMMMd", "yQQQQ", "yMMMEd", "MMMEd")
_INTERVAL_DAYS = {"MMMd": (1, 60), "yMMM": (31, 2000), "yMMMd": (1, 300)}  # shortest, longest
_LONGEST_DURATION = {
    "year": 100, "month": 40, "week": 60, "day": 120, "hour": 72, "minute": 90, "second": 90,
}  # fmt: skip
_SECONDS = dict(dates.TIMEDELTA_UNITS)
_DENOMINATORS = (
    "duration-hour", "duration-day", "duration-week", "duration-month", "duration-year",
    "mass-gram", "mass-kilogram", "volume-liter", "length-meter", "length-kilometer",
    "area-square-meter",
)  # fmt: skip
_FIRST_DAY = datetime.date(1950, 1, 1)
_DAYS = 36525


class PhraseBook:
    """Generator of phrases that exist in two locales.

    Args:
        source, target: The two `babel.Locale`s.
    """

    def __init__(self, source, target):
        self._locales = source, target
        self._words = words = Words.of(source, target)
        pools = (words.countries,) * 6 + (words.languages,) * 7 + (words.weekdays, words.months)
        self._pools = [pool for pool in pools if pool]
        self._denominators = [unit for unit in _DENOMINATORS if unit in words.units]
        lengths = [functools.partial(dates.format_date, format=name) for name in _DATE_LENGTHS]
        skeletons = [
            functools.partial(dates.format_skeleton, name)
            for name in words.known(_DATE_SKELETONS, "datetime_skeletons")
        ]
        self._dates = [*lengths, *skeletons]
        self._intervals = words.known([*_INTERVAL_DAYS, "Hm"], "interval_formats")
        self._list_styles = words.known(["standard", "or"], "list_patterns")
        self._compact = bool(words.known(["long"], "compact_decimal_formats"))
        self._kinds = self._usable({
            self.names: 24, self.date: 11, self.interval: 6, self.time: 2, self.date_and_time: 9,
            self.number: 7, self.measure: 13, self.measures: 4, self.money: 9, self.rate: 4,
            self.relative_time: 3, self.entry: 12, self.remark: 8,
        })  # fmt: skip
        self._moments = self._usable({self.date: 1, self.date_and_time: 1, self.relative_time: 1})
        self._subjects = self._usable({self.names: 1}) + self._moments
        self._values = self._usable(
            {self.measure: 1, self.measures: 1, self.money: 1, self.rate: 1, self.number: 1}
        )

    def _usable(self, weights):
        """Returns the kinds of phrases that both locales have, each as often as its weight."""
        money = self._words.currencies
        needs = {
            self.names: self._pools, self.interval: self._intervals,
            self.measure: self._words.units, self.measures: self._words.units,
            self.money: money, self.rate: money and self._denominators,
        }  # fmt: skip
        return [kind for kind, n in weights.items() if needs.get(kind, True) for _ in range(n)]

    def draw(self, seed) -> Iterator[tuple[str, str]]:
        """Draws phrases endlessly, some of them more than once.

        Args:
            seed: Random seed; the same seed gives the same phrases in the same order.

        Yields:
            Pairs of strings, source and target.
        """
        dice = Dice(seed)
        while True:
            pair = tuple(text.translate(_AS_TYPED) for text in dice.pick(self._kinds)(dice))
            if max(map(len, pair)) <= MAX_CHARACTERS:
                yield pair

    def phrases(self, count, seed) -> dict[str, str]:
        """Draws different phrases.

        Args:
            count: Number of phrases.
            seed: Random seed; the same seed gives the same phrases in the same order.

        Returns:
            A dictionary, target text by source text, with `count` entries.

        Raises:
            ValueError: If the two locales have too few words in common for so many phrases.
        """
        drawn = {}
        patience = 20 * count + 1000
        for source, target in itertools.islice(self.draw(seed), patience):
            drawn.setdefault(source, target)
            if len(drawn) == count:
                return drawn
        source, target = self._locales
        raise ValueError(
            "`examples` must not exceed the number of different phrases in both languages. "
            f"Received: examples={count}, but {source} and {target} gave {len(drawn)} phrases in "
            f"{patience} draws."
        )

    # Kinds of phrases. Each method draws a value and returns it in both languages.

    def names(self, dice) -> tuple[str, ...]:
        """Draws a list of names: "Japan, Peru, and Chad", "French or Thai", or a single name."""
        items = dice.some(dice.pick(self._pools), dice.pick((1, 2, 2, 2, 3, 3, 3, 3, 4, 4)))
        return self._list(items, dice.pick(self._list_styles))

    def date(self, dice) -> tuple[str, str]:
        """Draws a day in one of many formats, a month or a quarter."""
        day = self._day(dice)
        return self._first_reading(self._dates, dice.below(len(self._dates)), day)

    def time(self, dice) -> tuple[str, ...]:
        """Draws a time of day, with or without seconds."""
        time = datetime.time(dice.below(24), dice.below(60), dice.below(60))
        return self._both(dates.format_time, time, dice.pick(("short", "medium")))

    def date_and_time(self, dice) -> tuple[str, str]:
        """Draws a date and a time, joined as the locale joins them."""
        index, day, times = dice.below(len(_DATE_LENGTHS)), self._day(dice), self.time(dice)
        days = self._first_reading(self._dates[: len(_DATE_LENGTHS)], index, day)
        return tuple(
            _date_and_time_pattern(_DATE_LENGTHS[index], locale).format(time, day)
            for locale, time, day in zip(self._locales, times, days, strict=True)
        )

    def interval(self, dice) -> tuple[str, ...]:
        """Draws an interval of days or times: "Mar 4 – 9, 2025"."""
        skeleton = dice.pick(self._intervals)
        if skeleton == "Hm":
            first, last = sorted(dice.some(range(24 * 60), 2))
            ends = [datetime.time(*divmod(minute, 60)) for minute in (first, last)]
        else:
            first, (shortest, longest) = self._day(dice), _INTERVAL_DAYS[skeleton]
            days = shortest + dice.below(dice.pick((12, longest)))  # half of them within a month
            ends = first, first + datetime.timedelta(days)
        return self._both(dates.format_interval, *ends, skeleton)

    def number(self, dice) -> tuple[str, ...]:
        """Draws a number: in digits, in percent, or as "3.4 million"."""
        kind = dice.below(4 if self._compact else 3)
        if kind == 0:
            return self._both(numbers.format_decimal, dice.whole(8))
        if kind == 1:
            return self._both(numbers.format_decimal, dice.decimal(1 + dice.below(3)))
        if kind == 2:
            share = Decimal(dice.whole(3)).scaleb(-dice.pick((2, 3)))
            return self._both(numbers.format_percent, share, decimal_quantization=False)
        value = dice.whole(4) * 10 ** dice.pick((2, 5, 8, 11))
        compact = functools.partial(numbers.format_compact_decimal, value, format_type="long")
        source = self._locales[0]
        if compact(locale=source, fraction_digits=1) != compact(locale=source, fraction_digits=9):
            return self._both(numbers.format_decimal, value)  # rounding would hide the value
        return self._both(compact, fraction_digits=1)

    def measure(self, dice) -> tuple[str, ...]:
        """Draws a number with any unit: "12.5 kilometers"."""
        return self.measure_of(self._words.units, dice)

    def measure_of(self, codes, dice) -> tuple[str, ...]:
        """Draws a number with one of some units."""
        value = dice.whole(5) if dice.random() < 0.7 else dice.decimal(1 + dice.below(2))
        return self._both(units.format_unit, value, dice.pick(codes))

    def measures(self, dice) -> tuple[str, ...]:
        """Draws a list of two or three measures or amounts of money."""
        kinds = (self.measure, self.measure, self.money if self._words.currencies else self.measure)
        items = [dice.pick(kinds)(dice) for _ in range(2 + dice.below(2))]
        return self._list(items, "standard")

    def money(self, dice) -> tuple[str, ...]:
        """Draws an amount in any current currency: "12.50 euros", "3 yen"."""
        currency = dice.pick(self._words.currencies)
        places = numbers.get_currency_precision(currency)
        value = dice.decimal(places) if places and dice.random() < 0.5 else dice.whole(7)
        return self._both(
            numbers.format_currency, value, currency, format_type="name",
            currency_digits=isinstance(value, Decimal),
        )  # fmt: skip

    def rate(self, dice) -> tuple[str | None, ...]:
        """Draws an amount per unit: "12.50 euros per kilogram"."""
        unit, amounts = dice.pick(self._denominators), self.money(dice)
        return tuple(
            units.format_compound_unit(amount, denominator_unit=unit, locale=locale)
            for amount, locale in zip(amounts, self._locales, strict=True)
        )

    def relative_time(self, dice) -> tuple[str, ...]:
        """Draws a duration before or after now: "in 17 weeks", "3 days ago"."""
        unit = dice.pick(list(_LONGEST_DURATION))
        seconds = (1 + dice.below(_LONGEST_DURATION[unit])) * _SECONDS[unit]
        return self._both(
            dates.format_timedelta, dice.pick((seconds, -seconds)), granularity=unit,
            threshold=math.inf, add_direction=True,
        )  # fmt: skip

    def entry(self, dice) -> tuple[str, ...]:
        """Draws a subject with a value: "Japan: 3,000 euros"."""
        first, second = dice.pick(self._subjects)(dice), dice.pick(self._values)(dice)
        return tuple(f"{a}: {b}" for a, b in zip(first, second, strict=True))

    def remark(self, dice) -> tuple[str, ...]:
        """Draws a value with a time: "3,000 euros (March 4, 2025)"."""
        first, second = dice.pick(self._values)(dice), dice.pick(self._moments)(dice)
        return tuple(f"{a} ({b})" for a, b in zip(first, second, strict=True))

    # Rendering of phrases

    @staticmethod
    def typed(pair) -> list[str]:
        """Returns the words of a phrase's source, as people type them."""
        return pair[0].translate(_AS_TYPED).split()

    def _both(self, render, *values, **options):
        return tuple(render(*values, locale=locale, **options) for locale in self._locales)

    def _first_reading(self, formats, index, value):
        """Returns `value` in the first format whose source text is the same as with `index`."""
        source, target = self._locales
        text = formats[index](value, locale=source)
        earlier = (render for render in formats if render(value, locale=source) == text)
        return text, next(earlier)(value, locale=target)

    def _list(self, items, style):
        pattern = functools.partial(_list_pattern, len(items))
        if pattern(style, self._locales[0]) == pattern("standard", self._locales[0]):
            style = "standard"  # the source text is the same in both styles
        return tuple(
            pattern(style, locale).format(*side)
            for side, locale in zip(zip(*items, strict=True), self._locales, strict=True)
        )

    def _day(self, dice):
        return _FIRST_DAY + datetime.timedelta(dice.below(_DAYS))


@functools.cache
def _date_and_time_pattern(length, locale):
    pattern: Any = dates.get_datetime_format(length, locale=locale)  # a string
    return pattern.replace("'", "")


@functools.cache
def _list_pattern(count, style, locale):
    return lists.format_list([f"{{{index}}}" for index in range(count)], style, locale)
