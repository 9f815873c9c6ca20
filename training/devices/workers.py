"""Processes that train together: which one writes, what they agree on, and the loss of one."""

import contextlib
import re
import struct

import tensorflow as tf


class Workers:
    """The processes of a strategy. There is one, except under `MultiWorkerMirroredStrategy`.

    Every method but the properties must be called by all of them, in the same order.

    Args:
        strategy: A `tf.distribute.Strategy`.
    """

    def __init__(self, strategy):
        self.strategy = strategy
        several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        resolver = strategy.cluster_resolver if several else None
        self.count = len(resolver.cluster_spec().as_dict().get("worker", [0])) if resolver else 1
        self.is_chief = self.count == 1 or resolver.task_id == 0
        self._gather = tf.function(self._gather_in_graph, autograph=False)

    def chief_first(self, function):
        """Calls a function on the chief, and when it is done there on all others.

        Returns:
            What the function returned in this process.

        Raises:
            ConnectionError: On the others, if the function failed on the chief.
        """
        result = self._on_chief(function)
        return result if self.is_chief else function()

    def from_chief(self, function, names):
        """Calls a function on the chief alone and sends its result to all processes.

        Args:
            function: Returns a dictionary of floats.
            names: Its keys, in any order.

        Returns:
            The dictionary, in every process.

        Raises:
            ConnectionError: On the others, if the function failed on the chief.
        """
        figures = self._on_chief(function) or dict.fromkeys(names, 0.0)
        return {name: _float(self._all(_bits(figures[name]))[0]) for name in names}

    def any(self, flag):
        """Returns whether a flag is true in any of the processes."""
        return any(self._all(int(flag)))

    def require_same(self, **values):
        """Refuses to go on if an integer, below 2**63, is not the same in all processes.

        Raises:
            ValueError: In all of them, with the name of the value.
        """
        for name, value in values.items():
            everyone = self._all(value)
            if len(set(everyone)) > 1:
                raise ValueError(
                    f"the workers differ in their {name.replace('_', ' ')}: "
                    f"{', '.join(map(str, everyone))}. All of them need the same settings, the "
                    "same data and, on a shared file system, the same run folder."
                )

    @contextlib.contextmanager
    def watch(self):
        """Turns what TensorFlow raises when another process is lost into one clear error.

        Raises:
            ConnectionError: From the block, if another process has ended or cannot be reached.
        """
        try:
            yield
        except LOST as error:
            if self.count == 1:
                raise
            reason = re.search("aborted by: (.*)", error.message) or re.search(
                "(.*)", error.message
            )
            raise ConnectionError(
                "another worker has ended or cannot be reached. Start all workers again with the "
                "same commands: they go on from the newest checkpoint. TensorFlow says: "
                f"{reason[1]}"
            ) from error

    def _on_chief(self, function):
        """What a function returns on the chief, `None` on the others, when it is done."""
        error = result = None
        if self.is_chief:
            try:
                result = function()
            except BaseException as reason:
                error = reason
        failed = self.any(error is not None)
        if error is not None:
            raise error
        if failed:
            raise ConnectionError("the chief (worker 0) has stopped; its own message says why.")
        return result

    def _all(self, value):
        """Returns an integer of every process, in their order."""
        if self.count == 1:
            return [value]
        everyone = self._gather(tf.constant([value], tf.int64)).numpy().tolist()
        return everyone[:: len(everyone) // self.count]

    def _gather_in_graph(self, value):
        own = self.strategy.experimental_distribute_values_from_function(lambda context: value)
        return self.strategy.gather(own, axis=0)  # [replicas]


LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)
"""What a collective operation raises when a peer's connection breaks or its heartbeat stops."""


def _bits(number):
    """A float as the integer of the same 64 bits."""
    return struct.unpack("<q", struct.pack("<d", number))[0]


def _float(bits):
    return struct.unpack("<d", struct.pack("<q", bits))[0]
