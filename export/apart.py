"""Engines of exports in processes of their own.

All of their memory is free when they end, so that a large model and a runtime with its copy of the
weights need not fit into one process. Calls of several engines run at the same time, also if a
runtime holds Python's lock during a call.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.export import child_process
from keras_transformer.export.errors import ExportError
from keras_transformer.export.messages import NoMessageError, receive, send

# Bytes of weights from which on conversions and checks run in processes of their own. One with
# TensorFlow takes about four seconds to start.
LARGE = 2**27
PROCESS = "The process that runs the exported model"
CLOSED = f"{PROCESS} has been closed. Open the export again."
INTERRUPTED = f"{PROCESS} still works on a call that was interrupted."
ERRORS = {
    kind.__name__: kind for kind in (ExportError, MemoryError, OSError, RuntimeError, ValueError)
}


def is_large(model: Any) -> bool:
    """Returns whether the engines that check an export of a model run in other processes."""
    return 4 * model.count_params() >= LARGE


class EngineApart(contextlib.AbstractContextManager):
    """An engine in a process of its own, which ends with the block, or with this object.

    Args:
        module: Name of a module that calls `serve` when it runs as a program.
        *arguments: Arguments of the program, strings.
        errors: Dictionary from the names of exceptions to functions that return the exception to
            raise for a message. It extends `ERRORS`.
        inherited: An object with the attribute `descriptors`, a list of the numbers of open files,
            which the process inherits under the same numbers. `None`: it inherits none.
        restarts: Whether a new process takes the place of one that has ended or whose call was
            interrupted. Otherwise every further call raises an error.

    Raises:
        ExportError: If the process was killed or could not start. The methods raise it as well.
        Exception: The error with which the engine could not be created.

    Attributes:
        signatures: Names of the signatures.
    """

    def __init__(self, module, *arguments, errors=None, inherited=None, restarts=False):
        self._errors = {**ERRORS, **(errors or {})}
        self._program, self._inherited = (module, *arguments), inherited
        self._owner, self._restarts = os.getpid(), restarts
        self._begin()

    def _begin(self):
        self._trouble = None  # reason why the next answer would not be that of the next call
        self._process = self._start()
        self._finish = weakref.finalize(self, _end, self._process, self._log, self._owner)
        try:
            fields, _ = self._receive()
        except BaseException:
            self._finish()
            raise
        self.signatures = tuple(fields["signatures"])

    def _start(self):
        try:
            self._log = tempfile.TemporaryFile()  # noqa: SIM115
        except OSError as error:
            raise ExportError(f"{PROCESS} could not start: {error}") from error
        try:
            return subprocess.Popen(
                child_process.program(*self._program),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=child_process.environment(),
                pass_fds=getattr(self._inherited, "descriptors", ()),
            )
        except OSError as error:
            self._log.close()
            raise ExportError(f"{PROCESS} could not start: {error}") from error

    def run(self, name: str, /, **inputs: Any) -> dict[str, np.ndarray]:
        """Runs a signature and returns its outputs by name.

        Raises:
            Exception: The error of the engine.
        """
        self._prepare()
        self._trouble = INTERRUPTED  # until the whole answer has been read
        try:
            with contextlib.suppress(OSError):  # it has ended, which `_receive` reports
                send(self._process.stdin, {"signature": name}, inputs)
        except (TypeError, ValueError):  # of the inputs, before anything was written
            self._trouble = None
            raise
        return self._receive()[1]

    def close(self) -> None:
        """Ends the process; every further call raises an error."""
        self._restarts = False
        self._finish()

    def __exit__(self, *error) -> None:
        self.close()

    def _prepare(self):
        """Makes sure that the next answer belongs to the next call."""
        if os.getpid() != self._owner:
            raise ExportError(
                f"{PROCESS} belongs to the process from which this one was forked. Open the export "
                "again in this process."
            )
        if self._trouble is None and self._finish.alive:
            return
        if not self._restarts:
            raise ExportError(self._trouble or CLOSED)
        self._finish()
        self._begin()

    def _receive(self):
        try:
            fields, arrays = receive(self._process.stdout)
        except EOFError:
            self._trouble = self._failure()
            raise ExportError(self._trouble) from None
        except NoMessageError as error:
            self._trouble = f"{PROCESS} wrote something else than an answer: {error}"
            raise ExportError(self._trouble) from None
        self._trouble = None
        if "error" in fields:
            raise self._error(**fields["error"])
        return fields, arrays

    def _error(self, kinds, message, trace):
        known = next((self._errors[kind] for kind in kinds if kind in self._errors), None)
        if known is None:
            return RuntimeError(f"{kinds[0]}: {message}\n{trace}")
        return known(message)

    def _failure(self):
        """Returns the message about a process that has ended."""
        if not self._finish.alive:
            return CLOSED
        status = self._process.wait()
        self._log.seek(0)
        return child_process.failure(PROCESS, status, self._log.read())


def _end(process, log, owner):
    """Ends the process of an engine, unless this process was only forked from its owner."""
    if os.getpid() != owner:
        return
    process.kill()  # nothing is lost
    for stream in (process.stdin, process.stdout, log):
        with contextlib.suppress(OSError):  # a request that it did not read any more
            stream.close()
    process.wait()


def serve(make: Callable[[], Any], *, with_thread: bool = True) -> None:
    """Creates an engine and answers the requests of an `EngineApart` until its process ends.

    Args:
        make: Function that returns the engine, an object with `signatures`, the list of their
            names, and a method `run` like that of `EngineApart`.
        with_thread: Whether this process may end with the thread that created the `EngineApart`:
            see `child_process.end_with_parent`.
    """
    # A whole group of processes receives these signals; the parent ends this process.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    requests = queue.SimpleQueue()
    stdin, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer

    def read():
        with contextlib.suppress(EOFError, OSError):
            while True:
                requests.put(receive(stdin))

    child_process.end_with_parent(read, with_thread=with_thread)
    try:
        engine = _answer(answers, lambda: _created(make))
        while engine is not None:
            fields, inputs = requests.get()
            _answer(answers, lambda: (None, {}, engine.run(fields["signature"], **inputs)))  # noqa: B023
    except BaseException:
        traceback.print_exc()
    finally:  # Python would wait for the thread that reads stdin, and abort
        sys.stderr.flush()
        os._exit(1)


def _created(make):
    engine = make()
    return engine, {"signatures": list(engine.signatures)}, {}


def _answer(stream, work):
    """Sends the fields and arrays that `work` returns, or its error; returns its first result."""
    try:
        result, fields, arrays = work()
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        message = getattr(error, "message", None) or str(error)
        fields = {"kinds": kinds, "message": message, "trace": traceback.format_exc()}
        send(stream, {"error": fields})
        return None
    send(stream, fields, arrays)
    return result
