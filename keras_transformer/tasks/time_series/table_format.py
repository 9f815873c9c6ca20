"""`TableFormat`, the format of the CSV file of a time series."""

import dataclasses

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
DECIMALS = {".": "point", ",": "comma"}
ORDERS = ("day_first", "month_first")
FILLS = ("forward", "linear")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableFormat:
    """Format of the CSV file that a time series model was trained on.

    Lines for the model are read in the same format. It does not affect the model.

    Args:
        separator: Character between two cells: a comma, a semicolon or a tab.
        decimal: Decimal character, a point or a comma.
        date_column: Name of the column with dates. `None`: dates are not read.
        date_order: Order in dates such as 03/04/2005, `"day_first"` or `"month_first"`. `None`: the
            data have no such dates.
        step: Time from one step to the next, such as `"1 day"`. `None`: unknown, and dates are not
            read.
        fill: How gaps are filled, `"forward"` or `"linear"`. `None`: gaps are an error.
        fill_limit: Maximum length of a gap that is filled, in steps.
        filled: Number of steps that were filled in the training data.

    Raises:
        ValueError: If a value is not one of those listed.
    """

    separator: str = ","
    decimal: str = "."
    date_column: str | None = None
    date_order: str | None = None
    step: str | None = None
    fill: str | None = None
    fill_limit: int = 1
    filled: int = 0

    def __post_init__(self) -> None:
        choices = {
            "separator": tuple(SEPARATORS),
            "decimal": tuple(DECIMALS),
            "date_order": (None, *ORDERS),
            "fill": (None, *FILLS),
        }
        for name, valid in choices.items():
            if getattr(self, name) not in valid:
                raise ValueError(
                    f"`{name}` must be one of {', '.join(map(repr, valid))}. "
                    f"Received: {name}={getattr(self, name)!r}."
                )
