"""The step of a regular series, the time from one line to the next."""

import calendar
import collections
import dataclasses
import datetime
import itertools
import re

from keras_transformer.tasks.time_series.dates import Moment

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
    """The time between two steps, either in calendar months or as a duration.

    Steps shorter than a day are compared as instants, so that dates need their offset from UTC if
    the clock changes. Whole days may also be calendar days, which are an hour longer or shorter
    when the clock changes.

    Args:
        months: Number of months; 0 if the step is a duration.
        length: Duration, a `timedelta`; 0 if the step is in months.
    """

    months: int = 0
    length: datetime.timedelta = datetime.timedelta(0)

    @classmethod
    def parse(cls, text) -> "TimeStep":
        """Returns the step that a text such as `"15 minutes"` or `"1 month"` describes.

        Raises:
            ValueError: If the text does not describe a step.
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

    def __str__(self) -> str:
        if self.months:
            unit = "year" if self.months % 12 == 0 else "month"
            return _counted(self.months // MONTHS[unit], unit)
        units = (unit for unit in reversed(UNITS) if unit != "week")
        unit = next(unit for unit in units if not self.length % UNITS[unit])
        return _counted(self.length // UNITS[unit], unit)

    def between(self, before, after) -> int | None:
        """Returns the number of steps from one `Moment` to another.

        Returns:
            A whole number, below 1 if `after` is not after `before`; `None` if the time between
            them is not a whole number of steps.
        """
        if self.months:
            months = _months_between(before, after)
            return None if months is None or months % self.months else months // self.months
        spans = [after.instant - before.instant]
        if not self.length % DAY:
            spans.append(after.local - before.local)
        return next((span // self.length for span in spans if not span % self.length), None)

    def after(self, moment) -> Moment:
        """Returns the `Moment` one step after `moment`."""
        if not self.months:
            return Moment(later(moment.local, self.length), moment.offset)
        years, month = divmod(moment.local.month - 1 + self.months, 12)
        year, last = moment.local.year + years, _is_last(moment.local)
        if year > datetime.MAXYEAR:
            return Moment(datetime.datetime.max, moment.offset)
        days = calendar.monthrange(year, month + 1)[1]
        day = days if last else min(moment.local.day, days)
        return Moment(moment.local.replace(year=year, month=month + 1, day=day), moment.offset)


def later(local, length) -> datetime.datetime:
    """Returns the sum of a `datetime` and a `timedelta`, limited to the range of `datetime`."""
    try:
        return local + length
    except OverflowError:
        return datetime.datetime.min if length.days < 0 else datetime.datetime.max


def find_step(moments) -> TimeStep:
    """Returns the most frequent `TimeStep` between lines; a day if there is only one line.

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
    """Returns a list of the most common key above zero; empty if there is none."""
    return [key for key, _ in counts.most_common() if key > zero][:1]


def _months_between(before, after):
    """Returns the calendar months from one `Moment` to another; `None` if their days differ."""
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
