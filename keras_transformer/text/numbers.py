"""Numbers in files that people write: decimal notation, and nothing else that Python reads.

`float` also takes `1_0` for 10, digits of other scripts, spaces around a number and words such as
`infinity`; in a file each of these is more likely a mistake.
"""

import functools
import math
import re


def parse_number(text, decimal="."):
    """Returns a finite number in decimal notation, such as `-12.5` or `3e-4`.

    Args:
        text: String, without spaces around the number.
        decimal: The decimal sign, `"."` or `","`.

    Returns:
        A float; `None` if the text is something else, or too large for one.
    """
    if not _notation(decimal).fullmatch(text):
        return None
    value = float(text.replace(decimal, "."))
    return value if math.isfinite(value) else None


@functools.cache
def _notation(decimal):
    sign = re.escape(decimal)
    return re.compile(rf"[+-]?([0-9]+({sign}[0-9]*)?|{sign}[0-9]+)([eE][+-]?[0-9]+)?")
