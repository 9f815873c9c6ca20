"""Random draws that are the same on every machine."""

import random
from decimal import Decimal


class Dice(random.Random):
    """Draws based only on `random()`, whose sequence for a seed is the same in every Python."""

    def below(self, limit):
        """Draws an integer from 0 to below `limit`."""
        return int(self.random() * limit)

    def pick(self, choices):
        """Draws one of some choices."""
        return choices[self.below(len(choices))]

    def some(self, choices, count):
        """Draws `count` different choices, or all of them in random order if there are fewer."""
        drawn = {}  # ordered, unlike a set
        while len(drawn) < min(count, len(choices)):
            drawn[self.below(len(choices))] = None
        return [choices[index] for index in drawn]

    def whole(self, digits):
        """Draws a number of 1 to `digits` digits; all lengths are equally probable."""
        smallest = 10 ** self.below(digits)
        return smallest + self.below(9 * smallest)

    def decimal(self, places):
        """Draws a number with up to four digits before the point and `places`, not all 0, after."""
        scale = 10**places
        return Decimal(self.whole(4) * scale + 1 + self.below(scale - 1)).scaleb(-places)
