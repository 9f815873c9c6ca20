"""Columns whose values are lists of strings, such as the labels of a text."""

END = "\n"  # between the items of a list in a column; no item contains it


class ListColumn(str):
    """Name of a column of data whose values are lists of strings, which may be empty.

    In a data set, such a value is one string: its items with `END` between them. A source of data
    converts its own notation to this one.
    """

    __slots__ = ()


def items_of(text: str, separator: str = END) -> tuple[str, ...]:
    """Returns the different items of a list, without white space around them, in their order.

    Args:
        text: The list. Empty items are left out.
        separator: String between the items.
    """
    items = (item.strip() for item in text.split(separator))
    return tuple(dict.fromkeys(item for item in items if item))
