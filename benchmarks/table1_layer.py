"""A layer that mixes positions, with its counts, its time and its memory, for `table1.py`."""

import contextlib
import functools
import pathlib
import re
import time

import keras
import numpy as np
import tensorflow as tf
from measurements import BenchmarkError
from table1_counts import Counts, gradient_sizes, vanishes

from keras_transformer.free_memory import return_free_memory
from keras_transformer.layers import Mixing, MultiHeadSelfAttention
from keras_transformer.mixers import Mixer

PHASES = "forward", "training"
SIGNIFICANT = 1e-3  # smallest gradient relative to the largest one that counts as significant
MOST_LAYERS = 100_000
CLOCKS = {"processor": time.process_time, "wall": time.perf_counter}
PROCESS = pathlib.Path("/proc/self")


def layer_of(mixer, causal=True):
    """Returns the layer that computes a `Mixer`."""
    kind = MultiHeadSelfAttention if mixer.attends else Mixing
    return kind(mixer, causal=causal)


def inputs(rows, positions, width):
    """Returns random inputs `[rows, positions, width]`."""
    values = np.random.default_rng(1).standard_normal((rows, positions, width))
    return tf.constant(values, tf.float32)


def phases(layer):
    """Returns a function of the inputs for each phase, by name."""

    def training(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        return y, tape.gradient(y, [x, *(weight.value for weight in layer.trainable_weights)])

    return dict(zip(PHASES, (layer, training), strict=True))


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


class Timed:
    """A causal layer in its two phases, as `tf.function`s, perhaps compiled with XLA.

    Args:
        mixer: The `Mixer`.
        x: Inputs `[B, T, D]`.
        compiled: Whether XLA compiles the functions.
        clock: Clock of the times, `"processor"` or `"wall"`.
        gpu: Whether it runs on a GPU, whose allocator then measures the memory.

    Attributes:
        metadata: For each phase the `memory` of a call in bytes, or `None` if the system does not
            measure it; or the `error` of the compiler.
    """

    def __init__(self, mixer, x, compiled, clock, gpu):
        self._x, self._gpu, self._clock = x, gpu, CLOCKS[clock]
        layer = layer_of(mixer)
        layer.build(x.shape)
        self._calls = {
            name: tf.function(call, jit_compile=compiled) for name, call in phases(layer).items()
        }
        try:
            memory = {name: self._memory(call) for name, call in self._calls.items()}
        except tf.errors.OpError as error:
            self.metadata = {"error": str(error.message).splitlines()[0]}
        else:
            self.metadata = {"memory": memory}

    def _memory(self, call):
        """Returns the peak memory of a call beyond what the process holds before it, in bytes.

        The first call, which traces and compiles, is not counted.
        """
        _finish(call(self._x))
        if self._gpu:
            tf.config.experimental.reset_memory_stats("GPU:0")
            before = tf.config.experimental.get_memory_info("GPU:0")["current"]
            _finish(call(self._x))
            return tf.config.experimental.get_memory_info("GPU:0")["peak"] - before
        return_free_memory()
        with contextlib.suppress(OSError):
            (PROCESS / "clear_refs").write_text("5")  # resets the peak
            before = _resident("VmRSS")
            _finish(call(self._x))
            return _resident("VmHWM") - before
        return None

    def run(self, steps):
        """Runs each phase; returns its seconds.

        Args:
            steps: Number of calls, by phase.
        """
        seconds = {}
        for name, call in self._calls.items():
            begin = self._clock()
            for _ in range(steps[name]):
                result = call(self._x)
            _finish(result)
            seconds[name] = (self._clock() - begin) / steps[name]
        return {"phase_seconds": seconds}


def _finish(result):
    for tensor in tf.nest.flatten(result):
        tensor.numpy()


def _resident(name):
    """Returns a size of the process in bytes, from Linux."""
    (size,) = re.findall(rf"^{name}:\s*(\d+) kB", (PROCESS / "status").read_text(), re.MULTILINE)
    return int(size) * 1024


def make(order):
    """Returns a `Counted`, or a `Timed` for an order with `mode`."""
    keras.utils.set_random_seed(1)
    mixer, width = Mixer.make(order["mixer"]), order["width"]
    if "mode" not in order:
        return Counted(mixer, order["lengths"], width)
    if order["gpu"] and not tf.config.list_physical_devices("GPU"):
        raise BenchmarkError("`--device gpu` needs a GPU that TensorFlow finds.")
    x = inputs(order["rows"], order["positions"], width)
    return Timed(mixer, x, order["mode"] == "xla", order["clock"], order["gpu"])
