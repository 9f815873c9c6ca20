"""Numbers in text files: plain decimal notation only.

Python's `float` also accepts `1_0`, digits of other scripts, spaces around a number and words such
as `infinity`. In a file, these are more likely mistakes.
"""

import functools
import math
import re


def parse_number(text: str, decimal: str = ".") -> float | None:
    """Returns a finite number in decimal notation, such as `-12.5` or `3e-4`.

    Args:
        text: String, without spaces around the number.
        decimal: The decimal separator, `"."` or `","`.

    Returns:
        A float, or `None` if the text is not such a number or is too large for a float.
    """
    if not _notation(decimal).fullmatch(text):
        return None
    value = float(text.replace(decimal, "."))
    return value if math.isfinite(value) else None


@functools.cache
def _notation(decimal):
    point = re.escape(decimal)
    return re.compile(rf"[+-]?([0-9]+({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]+)?")
