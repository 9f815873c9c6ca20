"""Lines of a CSV file: cells, the columns that are read, and numbers.

The separator is a comma, a semicolon or a tab, the decimal sign a point or a comma. A cell may be
quoted; a line ends at a line feed. Columns that nobody asks for are not read, whatever is in them.
Lines are strings in which `surrogateescape` stands for what is not UTF-8.
"""

import csv
import dataclasses
import math
import re

import numpy as np

from keras_transformer.config.table_format import DECIMALS, SEPARATORS
from keras_transformer.text.numbers import parse_number

SPACES = " \t\n\v\f\r"  # around a cell
LARGEST = float(np.finfo(np.float32).max)
# 1,234 or 1,234,567: with a comma or a point.
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}([,.][0-9]{3})+")


@dataclasses.dataclass(frozen=True)
class Columns:
    """The places in a line of the columns that are read.

    Args:
        names: Their names, for errors.
        places: Their places, from 0.
        width: Number of columns of a line.
        separator: What stands between two of them.
    """

    names: tuple
    places: tuple
    width: int
    separator: str

    def cells(self, line, where):
        """Returns the cells of a line that are read, strings.

        Raises:
            ValueError: If it has more or fewer columns, or a cell that is read is not UTF-8.
        """
        cells = split(line, self.separator, where)
        if len(cells) != self.width:
            raise ValueError(
                f"{where}: must have {self.width} columns with a {SEPARATORS[self.separator]} "
                f"between them, {', '.join(self.names)} among them. Received: {len(cells)}."
            )
        read = [cells[place] for place in self.places]
        for name, cell in zip(self.names, read, strict=True):
            _check_utf8(cell, f"{where}: {name}")
        return read


def split(line, separator, where):
    """Returns the cells of a line, without white space around them."""
    if '"' not in line:
        return [cell.strip(SPACES) for cell in line.split(separator)]
    try:
        (cells,) = csv.reader([line], delimiter=separator, skipinitialspace=True)
    except csv.Error as error:
        raise ValueError(f"{where}: is no line of a CSV file: {error}.") from None
    return [cell.strip(SPACES) for cell in cells]


def find_columns(header, names, where, separator=None, likely=","):
    """Returns the `Columns` with some names.

    Args:
        header: The first line.
        names: Their names.
        where: The file and the line, for errors.
        separator: What stands between two columns. `None`: with which most names are found.
        likely: The one to take if they are found with others as well.

    Raises:
        ValueError: If a column is missing, or two have its name.
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
                f"{where}: the column {name} must be there once. Received: columns "
                f"{' and '.join(places)} have this name."
            )
    return Columns(tuple(names), tuple(map(cells.index, names)), len(cells), sign)


def is_header(line, names, decimal="."):
    """Returns whether a line has one of some names, and is not numbers alone."""
    rows = [split(line, sign, "the header") for sign in SEPARATORS]
    return any(
        {*names} & {*cells} and any(parse_number(cell, decimal) is None for cell in cells)
        for cells in rows
    )


def read_number(cell, name, where, decimal=".", may_be_empty=False):
    """Returns the number in a cell, `nan` if it is empty and may be.

    Raises:
        ValueError: If it is something else.
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


def find_decimal(cells, separator, path):
    """Returns the decimal sign of numbers: a comma if some have one, and none has a point.

    Args:
        cells: Pairs, the number of a line and a cell.
        separator: What stands between two columns.
        path: The file, for errors.

    Raises:
        ValueError: If there are both, or every comma (every point, beside semicolons) may as well
            stand between thousands.
    """
    cells = list(cells)
    with_sign = {sign: [pair for pair in cells if sign in pair[1]] for sign in DECIMALS}
    if with_sign["."] and with_sign[","]:
        (line, comma), (_, point) = with_sign[","][0], with_sign["."][0]
        raise ValueError(
            f"{path}, line {line}: numbers must have one decimal sign, a point or a comma, and "
            f"nothing between thousands. Received: {comma!r} here and {point!r} elsewhere."
        )
    sign = "," if with_sign[","] else "."
    doubtful = sign == "," or separator == ";"
    if doubtful and with_sign[sign] and all(_THOUSANDS.fullmatch(c) for _, c in with_sign[sign]):
        line, cell = with_sign[sign][0]
        number, thousands = cell.replace(",", "."), re.sub("[,.]", "", cell)
        raise ValueError(
            f"{path}, line {line}: {cell!r} is {number} or {thousands}, and no other number shows "
            f"which. Set `data.decimal` to {sign!r}, or remove what stands "
            "between thousands."
        )
    return sign


def _is_not_utf8(text):
    return any("\udc80" <= character <= "\udcff" for character in text)


def _check_utf8(cell, what):
    if not cell.isascii() and _is_not_utf8(cell):
        content = cell.encode("utf-8", "surrogateescape")
        raise ValueError(f"{what} must be UTF-8. Received: {content!r}.")
