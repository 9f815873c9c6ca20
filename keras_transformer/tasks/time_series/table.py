"""Lines of a CSV file: cells, the columns that are read, and numbers.

The separator is a comma, a semicolon or a tab, and the decimal sign a point or a comma. A cell may
be quoted; a line ends at a line feed. Columns without a use are not read and may contain anything.
Lines are strings in which bytes that are not UTF-8 are escaped by `surrogateescape`.
"""

import csv
import dataclasses
import math
import re

import numpy as np

from keras_transformer.tasks.time_series.table_format import DECIMALS, SEPARATORS
from keras_transformer.text.numbers import parse_number

SPACES = " \t\n\v\f\r"  # removed around a cell
LARGEST = float(np.finfo(np.float32).max)
# 1,234 or 1,234,567: with a comma or a point.
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}([,.][0-9]{3})+")


@dataclasses.dataclass(frozen=True)
class Columns:
    """Columns of a line that are read.

    Args:
        names: Names of the columns, for errors.
        places: Indices of the columns, from 0.
        width: Number of all columns of a line.
        separator: Separator of two columns.
    """

    names: tuple
    places: tuple
    width: int
    separator: str

    def cells(self, line, where) -> list[str]:
        """Returns the cells of these columns in a line, strings.

        Raises:
            ValueError: If the line has more or fewer columns, or a cell is not UTF-8.
        """
        cells = split(line, self.separator, where)
        if len(cells) != self.width:
            raise ValueError(
                f"{where}: must have {self.width} columns with a {SEPARATORS[self.separator]} "
                f"between them, including {', '.join(self.names)}. Received: {len(cells)}."
            )
        read = [cells[place] for place in self.places]
        for name, cell in zip(self.names, read, strict=True):
            _check_utf8(cell, f"{where}: {name}")
        return read


def split(line, separator, where) -> list[str]:
    """Returns the cells of a line, without white space around them."""
    if '"' not in line:
        return [cell.strip(SPACES) for cell in line.split(separator)]
    try:
        (cells,) = csv.reader([line], delimiter=separator, skipinitialspace=True)
    except csv.Error as error:
        raise ValueError(f"{where}: is not a line of a CSV file: {error}.") from None
    return [cell.strip(SPACES) for cell in cells]


def find_columns(header, names, where, separator=None, likely=",") -> Columns:
    """Returns the `Columns` with the given names.

    Args:
        header: The first line.
        names: Names of the columns.
        where: File and line, for errors.
        separator: Separator of two columns. `None`: the separator with which most names are found.
        likely: Separator to prefer if several find equally many names.

    Raises:
        ValueError: If a column is missing, or two columns have the same name.
    """
    separators = sorted(SEPARATORS, key=lambda sign: sign != likely)
    separators = separators if separator is None else [separator]
    rows = {sign: split(header, sign, where) for sign in separators}
    sign = max(rows, key=lambda sign: (len({*names} & {*rows[sign]}), len(rows[sign])))
    cells = rows[sign]
    if missing := [name for name in names if name not in cells]:
        hint = "; the line is not UTF-8" if _is_not_utf8(header) else ""
        raise ValueError(
            f"{where}: the header must have the columns {', '.join(names)}, with a "
            f"{SEPARATORS[sign]} between two. Missing: {', '.join(missing)}{hint}."
        )
    for name in names:
        if cells.count(name) > 1:
            places = [str(place) for place, cell in enumerate(cells, start=1) if cell == name]
            raise ValueError(
                f"{where}: the column {name} must occur once. Received: columns "
                f"{' and '.join(places)} have this name."
            )
    return Columns(tuple(names), tuple(map(cells.index, names)), len(cells), sign)


def is_header(line, names, decimal=".") -> bool:
    """Returns whether a line is a header: it has one of the names, and a cell that is no number."""
    rows = [split(line, sign, "the header") for sign in SEPARATORS]
    return any(
        {*names} & {*cells} and any(parse_number(cell, decimal) is None for cell in cells)
        for cells in rows
    )


def read_number(cell, name, where, decimal=".", may_be_empty=False) -> float:
    """Returns the number in a cell, or NaN for an empty cell if `may_be_empty`.

    Raises:
        ValueError: If the cell is not a number.
    """
    if may_be_empty and not cell:
        return math.nan
    number = parse_number(cell, decimal)
    if number is None or abs(number) > LARGEST:
        rule = "a number or empty" if may_be_empty else "a number"
        other = next(sign for sign in DECIMALS if sign != decimal)
        hint = f", and the decimal sign is a {DECIMALS[decimal]}" if other in cell else ""
        raise ValueError(f"{where}: {name} must be {rule}. Received: {cell!r}{hint}.")
    return number


def find_decimal(cells, separator, path) -> str:
    """Returns the decimal sign of numbers: a comma if some have one, and none has a point.

    Args:
        cells: Pairs of line number and cell.
        separator: Separator of two columns.
        path: The file, for errors.

    Raises:
        ValueError: If some numbers have a point and others a comma, or if all commas (with
            semicolons as separators, all points) could also be thousands separators.
    """
    cells = list(cells)
    with_sign = {sign: [pair for pair in cells if sign in pair[1]] for sign in DECIMALS}
    if with_sign["."] and with_sign[","]:
        (line, comma), (_, point) = with_sign[","][0], with_sign["."][0]
        raise ValueError(
            f"{path}, line {line}: numbers must have one decimal sign, a point or a comma, and "
            f"no thousands separators. Received: {comma!r} here and {point!r} elsewhere."
        )
    sign = "," if with_sign[","] else "."
    doubtful = sign == "," or separator == ";"
    if doubtful and with_sign[sign] and all(_THOUSANDS.fullmatch(c) for _, c in with_sign[sign]):
        line, cell = with_sign[sign][0]
        number, thousands = cell.replace(",", "."), re.sub("[,.]", "", cell)
        raise ValueError(
            f"{path}, line {line}: {cell!r} is {number} or {thousands}, and no other number "
            f"shows which. Set `data.decimal` to {sign!r}, or remove the thousands separators."
        )
    return sign


def _is_not_utf8(text):
    return any("\udc80" <= character <= "\udcff" for character in text)


def _check_utf8(cell, what):
    if not cell.isascii() and _is_not_utf8(cell):
        content = cell.encode("utf-8", "surrogateescape")
        raise ValueError(f"{what} must be UTF-8. Received: {content!r}.")
