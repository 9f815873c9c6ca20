"""Random draws that are the same on every machine."""

import random
from decimal import Decimal
from typing import Any


class Dice(random.Random):
    """Draws based only on `random()`, whose sequence for a seed is the same in every Python."""

    def below(self, limit) -> int:
        """Draws an integer from 0 to below `limit`."""
        return int(self.random() * limit)

    def pick(self, choices) -> Any:
        """Draws one of some choices."""
        return choices[self.below(len(choices))]

    def some(self, choices, count) -> list:
        """Draws `count` different choices, or all of them in random order if there are fewer."""
        drawn = {}  # ordered, unlike a set
        while len(drawn) < min(count, len(choices)):
            drawn[self.below(len(choices))] = None
        return [choices[index] for index in drawn]

    def whole(self, digits) -> int:
        """Draws a number of 1 to `digits` digits; all lengths are equally probable."""
        smallest = 10 ** self.below(digits)
        return smallest + self.below(9 * smallest)

    def decimal(self, places) -> Decimal:
        """Draws a number with up to four digits before the point and `places`, not all 0, after."""
        scale = 10**places
        return Decimal(self.whole(4) * scale + 1 + self.below(scale - 1)).scaleb(-places)
