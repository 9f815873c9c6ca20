"""Counts of a layer that mixes positions, and of a stack of them, for `table1.py`."""

import functools

import keras
import numpy as np
from table1_counts import Counts, gradient_sizes, vanishes
from table1_layer import inputs, layer_of, phases

from keras_transformer.mixers import Mixer

SIGNIFICANT = 1e-3  # smallest gradient relative to the largest one that counts as significant
MOST_LAYERS = 100_000


class Counted:
    """The counts of a mixer at several numbers of positions, as `metadata`.

    Args:
        mixer: The `Mixer`.
        lengths: Numbers of positions.
        width: Number of features.
    """

    def __init__(self, mixer, lengths, width):
        self._mixer, self._width = mixer, width
        self._reach = functools.cache(self._measured_reach)
        self.metadata = {"counts": [self._at(length) for length in lengths]}

    def _at(self, length):
        layer, x = layer_of(self._mixer), inputs(1, length, self._width)
        layer(x)
        counts = {name: vars(Counts(call, x)) for name, call in phases(layer).items()}
        whole = not self._mixer.is_causal
        last = self._reach(self._mixer, length, True)
        layers = self._layers(length)
        trips = max(1, counts["forward"]["trips"])
        return {
            "positions": length, **counts, "last": last,
            "middle": self._reach(self._mixer, length, False) if whole else None,
            "layers": layers, "path": layers and layers * trips,
        }  # fmt: skip

    def _measured_reach(self, mixer, length, causal):
        """Returns how far the last position of a causal layer or the middle one reaches.

        `reach` is a number of positions, and `distance` is that of the first of them.
        """
        layer = layer_of(mixer, causal)
        position = length - 1 if causal else length // 2
        sizes = gradient_sizes(layer, inputs(1, length, self._width), position)
        significant = sizes >= SIGNIFICANT * sizes.max()
        return {
            "reach": int((sizes > 0).sum()), "distance": position - int(np.flatnonzero(sizes)[0]),
            "significant": int(significant.sum()), "vanishes": vanishes(sizes),
        }  # fmt: skip

    def _layers(self, length):
        """Returns the number of causal layers until the last position depends on the first one."""
        distance = 0
        for number in range(MOST_LAYERS):
            last = self._reach(self._mixer.at(number), length, True)
            distance += length if last["vanishes"] else last["distance"]
            if distance >= length - 1:
                return number + 1
            if not distance:
                return None
        return None


def make(order):
    """Returns the `Counted` mixer of an order."""
    keras.utils.set_random_seed(1)
    return Counted(Mixer.make(order["mixer"]), order["lengths"], order["width"])
