"""`TableFormat`, how the lines of a series are written and how far apart its steps are."""

import dataclasses

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
DECIMALS = {".": "point", ",": "comma"}
ORDERS = ("day_first", "month_first")
FILLS = ("forward", "linear")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableFormat:
    """The format of the CSV file that a model of a series was trained on.

    Whoever reads lines for it reads them in the same way. It changes no arithmetic.

    Args:
        separator: Sign between two cells: a comma, a semicolon or a tab.
        decimal: Decimal sign, a point or a comma.
        date_column: Name of the column of dates. `None`: dates are not read.
        date_order: `"day_first"` or `"month_first"`, of dates such as 03/04/2005. `None`: there
            were none.
        step: Time from one step to the next, such as `"1 day"`. `None`: it is not known, and dates
            are not read.
        fill: How gaps are filled, `"forward"` or `"linear"`. `None`: they are refused.
        fill_limit: Most steps of a gap that is filled.
        filled: Steps that were filled in the data that the model was trained on.

    Raises:
        ValueError: If a value is none of those named here.
    """

    separator: str = ","
    decimal: str = "."
    date_column: str | None = None
    date_order: str | None = None
    step: str | None = None
    fill: str | None = None
    fill_limit: int = 1
    filled: int = 0

    def __post_init__(self):
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
