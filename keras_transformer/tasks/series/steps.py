"""The step of a regular series: the time from one line to the next."""

import calendar
import collections
import dataclasses
import datetime
import itertools
import re

from keras_transformer.tasks.series.dates import Moment

DAY = datetime.timedelta(days=1)
UNITS = {
    "microsecond": datetime.timedelta(microseconds=1),
    "millisecond": datetime.timedelta(milliseconds=1),
    "second": datetime.timedelta(seconds=1),
    "minute": datetime.timedelta(minutes=1),
    "hour": datetime.timedelta(hours=1),
    "day": DAY,
    "week": 7 * DAY,
}
MONTHS = {"month": 1, "year": 12}
_STEP = re.compile(rf"([1-9][0-9]{{0,5}}) +({'|'.join([*UNITS, *MONTHS])})s?")


@dataclasses.dataclass(frozen=True)
class TimeStep:
    """A time between two steps: either months of the calendar, or a length of time.

    Steps below a day are compared as instants: where a clock changes, dates need their offset from
    UTC. Whole days may also be those of the calendar, which are an hour longer or shorter then.

    Args:
        months: Number of months, 0 if it is a length of time.
        length: A `timedelta`, 0 if it is months.
    """

    months: int = 0
    length: datetime.timedelta = datetime.timedelta(0)

    @classmethod
    def parse(cls, text):
        """Returns the step that a text such as `"15 minutes"` or `"1 month"` is.

        Raises:
            ValueError: If it is something else.
        """
        if (match := _STEP.fullmatch(text)) is None:
            units = ", ".join([*UNITS, *MONTHS])
            raise ValueError(
                f'`step` must be a number and one of {units}, such as "15 minutes" or "1 month". '
                f"Received: {text!r}."
            )
        number, unit = int(match[1]), match[2]
        if unit in MONTHS:
            return cls(months=number * MONTHS[unit])
        return cls(length=number * UNITS[unit])

    def __str__(self):
        if self.months:
            unit = "year" if self.months % 12 == 0 else "month"
            return _counted(self.months // MONTHS[unit], unit)
        units = (unit for unit in reversed(UNITS) if unit != "week")
        unit = next(unit for unit in units if not self.length % UNITS[unit])
        return _counted(self.length // UNITS[unit], unit)

    def between(self, before, after):
        """Returns how many steps one `Moment` is after another.

        Returns:
            A whole number, below 1 if it is not after it; `None` if the time between is not a
            number of steps.
        """
        if self.months:
            months = _months_between(before, after)
            return None if months is None or months % self.months else months // self.months
        spans = [after.instant - before.instant]
        if not self.length % DAY:
            spans.append(after.local - before.local)
        return next((span // self.length for span in spans if not span % self.length), None)

    def after(self, moment):
        """Returns the `Moment` one step after another."""
        if not self.months:
            return Moment(later(moment.local, self.length), moment.offset)
        years, month = divmod(moment.local.month - 1 + self.months, 12)
        year, last = moment.local.year + years, _is_last(moment.local)
        if year > datetime.MAXYEAR:
            return Moment(datetime.datetime.max, moment.offset)
        days = calendar.monthrange(year, month + 1)[1]
        day = days if last else min(moment.local.day, days)
        return Moment(moment.local.replace(year=year, month=month + 1, day=day), moment.offset)


def later(local, length):
    """Returns a `datetime` after another one; the first or the last that there is, beyond these."""
    try:
        return local + length
    except OverflowError:
        return datetime.datetime.min if length.days < 0 else datetime.datetime.max


def find_step(moments):
    """Returns the `TimeStep` from most lines to the next; a day if there is one line.

    Args:
        moments: List of `Moment`s.
    """
    pairs, zero = list(itertools.pairwise(moments)), datetime.timedelta(0)
    months = collections.Counter(_months_between(*pair) or 0 for pair in pairs)
    instants = collections.Counter(after.instant - before.instant for before, after in pairs)
    clocks = collections.Counter(after.local - before.local for before, after in pairs)
    candidates = [
        *(TimeStep(months=number) for number in _most_common(months, 0)),
        *(TimeStep(length=length) for length in _most_common(instants, zero)),
        *(TimeStep(length=length) for length in _most_common(clocks, zero)),
    ]
    if not candidates:
        return TimeStep(length=DAY)
    candidates = list(dict.fromkeys(candidates))
    if len(candidates) == 1:
        return candidates[0]
    return max(candidates, key=lambda step: sum(step.between(*pair) == 1 for pair in pairs))


def _most_common(counts, zero):
    """The most common key above zero, in a list; none if there are none."""
    return [key for key, _ in counts.most_common() if key > zero][:1]


def _months_between(before, after):
    """Months of the calendar from one `Moment` to another; `None` if their days differ."""
    first, second = before.local, after.local
    short = min(first, second, key=lambda local: local.day)
    same_day = first.day == second.day or _is_last(short)
    if first.time() != second.time() or not same_day:
        return None
    return 12 * (second.year - first.year) + second.month - first.month


def _is_last(local):
    return local.day == calendar.monthrange(local.year, local.month)[1]


def _counted(number, unit):
    return f"{number} {unit}{'s' if number > 1 else ''}"
