"""Time and memory of a layer that mixes positions, for `table1.py`."""

import contextlib
import pathlib
import re
import time

import keras
import numpy as np
import tensorflow as tf
from measurements import BenchmarkError

from keras_transformer.free_memory import return_free_memory
from keras_transformer.layers import Mixing, MultiHeadSelfAttention
from keras_transformer.mixers import Mixer

PHASES = "forward", "training"
CLOCKS = {"processor": time.process_time, "wall": time.perf_counter}
SHORT = 2  # positions of a layer whose memory is nearly that of the program and the weights
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


class Timed:
    """A causal layer in its two phases, as `tf.function`s, perhaps compiled with XLA.

    Args:
        mixer: The `Mixer`.
        x: Inputs `[B, T, D]`.
        compiled: Whether XLA compiles the functions.
        clock: Clock of the times, `"processor"` or `"wall"`.
        gpu: Whether it runs on a GPU, whose allocator then measures the memory.

    Raises:
        tf.errors.OpError: If XLA cannot compile it.
    """

    def __init__(self, mixer, x, compiled, clock, gpu):
        self._x, self._gpu, self._clock = x, gpu, CLOCKS[clock]
        layer = layer_of(mixer)
        layer.build(x.shape)
        self._calls = {
            name: tf.function(call, jit_compile=compiled) for name, call in phases(layer).items()
        }
        for call in self._calls.values():
            _finish(call(x))  # traces and compiles

    def peak(self):
        """Returns the peak memory of the process during a forward and backward pass, in bytes.

        On a GPU it is that of TensorFlow's allocator. `None`: the system does not measure it.
        """
        if self._gpu:
            tf.config.experimental.reset_memory_stats("GPU:0")
            _finish(self._calls["training"](self._x))
            return tf.config.experimental.get_memory_info("GPU:0")["peak"]
        return_free_memory()
        with contextlib.suppress(OSError):
            (PROCESS / "clear_refs").write_text("5")  # resets the peak
            _finish(self._calls["training"](self._x))
            return _resident("VmHWM")
        return None

    def seconds(self, steps):
        """Returns the seconds of a call of each phase.

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
        return seconds


def _finish(result):
    for tensor in tf.nest.flatten(result):
        tensor.numpy()


def _resident(name):
    """Returns a size of the process in bytes, from Linux."""
    (size,) = re.findall(rf"^{name}:\s*(\d+) kB", (PROCESS / "status").read_text(), re.MULTILINE)
    return int(size) * 1024


class Measured:
    """A mixer in one process, as layers of several lengths, one at a time.

    Its `run` takes a dictionary with the number of `positions`, the `mode` and the number of calls
    of each phase. A process has one mode, and its lengths increase: TensorFlow's allocator keeps
    what it has freed, so memory is the peak beyond that of a layer of `SHORT` positions.

    Args:
        order: A dictionary with the table of a `mixer`, the `width`, the number of `rows`, the
            `clock` and whether to use a `gpu`.
    """

    def __init__(self, order):
        self._order, self._mixer = order, Mixer.make(order["mixer"])
        self._case = self._layer = self._short = self._memory = None
        self.metadata = {}

    def run(self, request):
        """Returns the `phase_seconds` and the `memory` of a case, or its `error`."""
        case = request["positions"], request["mode"]
        if case != self._case:
            self._case, self._layer = case, None  # frees the previous layer before the next one
            return_free_memory()
            try:
                if self._short is None:
                    self._short = self._timed(SHORT, case[1]).peak()
                self._layer = self._timed(*case)
            except tf.errors.OpError as error:
                return {"error": str(error.message).splitlines()[0]}
            peak = self._layer.peak()
            self._memory = None if peak is None else peak - self._short
        return {"phase_seconds": self._layer.seconds(request), "memory": self._memory}

    def _timed(self, positions, mode):
        keras.utils.set_random_seed(1)
        order = self._order
        x = inputs(order["rows"], positions, order["width"])
        return Timed(self._mixer, x, mode == "xla", order["clock"], order["gpu"])


def make(order):
    """Returns the `Measured` mixer of an order."""
    if order["gpu"] and not tf.config.list_physical_devices("GPU"):
        raise BenchmarkError("`--device gpu` needs a GPU that TensorFlow finds.")
    return Measured(order)
