"""Dates and times of the steps of a series.

Supported formats are ISO 8601 (`2005-08-31`, `2005-08-31T14:00Z`, `2005-08-31 14:00:30+01:00`,
`2005-08`, `2005`, `20050831`), `2005/08/31`, `31.08.2005`, and, if the order of day and month is
known, `31/08/2005`, `08/31/2005`, and both with hyphens. A date may be followed by a time, and a
time by an offset from UTC.
"""

import dataclasses
import datetime
import re

_DATES = (
    r"(?P<year>[0-9]{4})(-(?P<month>[0-9]{1,2})(-(?P<day>[0-9]{1,2}))?)?",
    r"(?P<year>[0-9]{4})/(?P<month>[0-9]{1,2})/(?P<day>[0-9]{1,2})",
    r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
    r"(?P<day>[0-9]{1,2})\.(?P<month>[0-9]{1,2})\.(?P<year>[0-9]{4})",
)
_ORDERED = {
    "day_first": r"(?P<day>[0-9]{1,2})([/-])(?P<month>[0-9]{1,2})\2(?P<year>[0-9]{4})",
    "month_first": r"(?P<month>[0-9]{1,2})([/-])(?P<day>[0-9]{1,2})\2(?P<year>[0-9]{4})",
}
_TIME = (
    r"((T| +)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(:(?P<second>[0-9]{2})([.,](?P<fraction>[0-9]{1,6}))?)?"
    r" *(?P<offset>Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
_PATTERNS = [re.compile(date + _TIME) for date in _DATES]
_ORDERED_PATTERNS = {order: re.compile(date + _TIME) for order, date in _ORDERED.items()}


@dataclasses.dataclass(frozen=True)
class Moment:
    """A date, with or without a time.

    Args:
        local: Local time, a `datetime` without a time zone.
        offset: Offset of the local time from UTC, a `timedelta`. `None`: unknown.
    """

    local: datetime.datetime
    offset: datetime.timedelta | None = None

    @property
    def instant(self) -> datetime.datetime:
        """The time in UTC; the local time if its offset is unknown.

        Raises:
            OverflowError: If it is before the year 1 or after the year 9999.
        """
        return self.local - (self.offset or datetime.timedelta(0))

    def __str__(self) -> str:
        if self.offset is not None:
            return self.local.replace(tzinfo=datetime.timezone(self.offset)).isoformat()
        midnight = self.local.time() == datetime.time()
        return self.local.date().isoformat() if midnight else self.local.isoformat()


def needs_order(text) -> bool:
    """Returns whether a date depends on the order of day and month, such as 03/04/2005."""
    return _ORDERED_PATTERNS["day_first"].fullmatch(text) is not None


def parse_date(text, order=None) -> Moment | None:
    """Returns the `Moment` that a text describes; `None` if the text is not a date.

    Args:
        text: String.
        order: `"day_first"` or `"month_first"` for dates such as 03/04/2005. `None`: such dates are
            not accepted.
    """
    patterns = [_ORDERED_PATTERNS[order], *_PATTERNS] if order else _PATTERNS
    for pattern in patterns:
        if match := pattern.fullmatch(text):
            break
    else:
        return None
    fields = match.groupdict()
    numbers = [int(fields[name] or 1) for name in ("year", "month", "day")]
    numbers += [int(fields[name] or 0) for name in ("hour", "minute", "second")]
    try:
        local = datetime.datetime(*numbers, int((fields["fraction"] or "").ljust(6, "0")))
        moment = Moment(local, _offset(fields["offset"]))
        _ = moment.instant
    except (ValueError, OverflowError):  # such as April 31, or a time before the year 1 in UTC
        return None
    return moment


def _offset(text):
    if text is None:
        return None
    digits = "0000" if text == "Z" else text[1:].replace(":", "").ljust(4, "0")
    offset = datetime.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if offset >= datetime.timedelta(days=1):
        raise ValueError
    return -offset if text[0] == "-" else offset


def read_date(text, where, order=None) -> Moment:
    """Returns the `Moment` in a cell; see `parse_date`.

    Raises:
        ValueError: If the cell is not a date.
    """
    moment = parse_date(text, order)
    if moment is None:
        rule = "2005-08-31, 2005-08-31T14:00+01:00 or 31.08.2005"
        if needs_order(text):
            rule += {
                "day_first": ", or 31/08/2005, with the day first",
                "month_first": ", or 08/31/2005, with the month first",
            }.get(order, "")
        raise ValueError(f"{where}: the date must look like {rule}. Received: {text!r}.")
    return moment
