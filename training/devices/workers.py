"""Processes that train together: communication, agreement and the loss of a process."""

import contextlib
import re
import struct
from collections.abc import Generator
from typing import Any

import tensorflow as tf


class Workers:
    """The processes of a strategy: only one, except under `MultiWorkerMirroredStrategy`.

    All processes must call the methods, in the same order.

    Args:
        strategy: A `tf.distribute.Strategy`.
    """

    def __init__(self, strategy):
        self.strategy = strategy
        several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        resolver: Any = strategy.cluster_resolver if several else None
        self.count = len(resolver.cluster_spec().as_dict().get("worker", [0])) if resolver else 1
        self.is_chief = self.count == 1 or resolver.task_id == 0
        self._gather = tf.function(self._gather_in_graph, autograph=False)

    def chief_first(self, function) -> Any:
        """Calls a function on the chief, and then on all other processes.

        Returns:
            The result of the function in this process.

        Raises:
            ConnectionError: On the others, if the function failed on the chief.
        """
        result = self._on_chief(function)
        return result if self.is_chief else function()

    def from_chief(self, function, names) -> dict[str, float]:
        """Calls a function on the chief only, and sends its result to all processes.

        Args:
            function: Function that returns a dictionary of floats.
            names: Keys of the dictionary, in the same order in all processes.

        Returns:
            The dictionary, in every process.

        Raises:
            ConnectionError: On the others, if the function failed on the chief.
        """
        results = self._on_chief(function) or dict.fromkeys(names, 0.0)
        return {name: _float(self._all(_bits(results[name]))[0]) for name in names}

    def any(self, flag) -> bool:
        """Returns `True` if a flag is true in any of the processes."""
        return any(self._all(int(flag)))

    def require_same(self, **values) -> None:
        """Checks that integers, below 2**63, are the same in all processes.

        Raises:
            ValueError: In all processes, with the name of the value that differs.
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
    def watch(self) -> Generator[None]:
        """Context manager that turns TensorFlow's errors about a lost process into a clear one.

        Raises:
            ConnectionError: From the block, if another process has ended or cannot be reached.
        """
        try:
            yield
        except LOST as error:
            if self.count == 1:
                raise
            message = str(error.message)
            first_line, _, _ = message.partition("\n")
            reason = re.search("aborted by: (.*)", message)
            raise ConnectionError(
                "another worker has ended or cannot be reached. Start all workers again with the "
                "same commands: they resume from the newest checkpoint. TensorFlow reports: "
                f"{reason[1] if reason else first_line}"
            ) from error

    def _on_chief(self, function):
        """Returns the result of a function on the chief, and `None` on the others afterwards."""
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
            raise ConnectionError("the chief (worker 0) has stopped; see its own error message.")
        return result

    def _all(self, value):
        """Returns an integer from every process, a list in the order of the processes."""
        if self.count == 1:
            return [value]
        everyone = self._gather(tf.constant([value], tf.int64)).numpy().tolist()
        return everyone[:: len(everyone) // self.count]

    def _gather_in_graph(self, value):
        own = self.strategy.experimental_distribute_values_from_function(lambda context: value)
        return self.strategy.gather(own, axis=0)  # [replicas]


LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)
"""Errors of a collective operation when a peer's connection breaks or its heartbeat stops."""


def _bits(number):
    """Returns the integer with the same 64 bits as a float."""
    return struct.unpack("<q", struct.pack("<d", number))[0]


def _float(bits):
    return struct.unpack("<d", struct.pack("<q", bits))[0]
