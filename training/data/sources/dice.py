"""Random draws that are the same everywhere."""

import random
from decimal import Decimal


class Dice(random.Random):
    """Draws made of `random()` alone, which Python promises to keep the same for a given seed."""

    def below(self, limit):
        return int(self.random() * limit)

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def some(self, choices, count):
        """Different choices, `count` of them or as many as there are."""
        drawn = {}  # ordered, unlike a set
        while len(drawn) < min(count, len(choices)):
            drawn[self.below(len(choices))] = None
        return [choices[index] for index in drawn]

    def whole(self, digits):
        """A number of 1 to `digits` digits, every length equally often."""
        smallest = 10 ** self.below(digits)
        return smallest + self.below(9 * smallest)

    def decimal(self, places):
        """A number with up to four digits before the point and `places` after it, not all 0."""
        scale = 10**places
        return Decimal(self.whole(4) * scale + 1 + self.below(scale - 1)).scaleb(-places)
