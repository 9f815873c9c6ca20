"""Child processes that end with their parent, even if the parent is killed."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal to receive when the parent has ended


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    """Runs a program that calls `end_with_parent`, and waits for its end.

    Args:
        command: The program and its arguments, a list of strings.
        **options: Options of `subprocess.run`, apart from stdin, stdout and stderr.

    Returns:
        The exit status and what the program wrote, as bytes.
    """
    # Nothing is written. When this process ends, the system closes its end of the pipe.
    reading, writing = os.pipe()
    try:
        return subprocess.run(command, stdin=reading, capture_output=True, **options)
    finally:
        os.close(reading)
        os.close(writing)


def end_with_parent() -> None:
    """Lets this process, which `run` has started, end when its parent ends.

    The end of stdin shows on every system that the parent has ended, but a thread only notices it
    when no C++ code holds Python's lock. On Linux the system itself kills the process.
    """
    threading.Thread(target=_exit_at_end_of_stdin, daemon=True).start()
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):  # a C library without prctl
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _exit_at_end_of_stdin():
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(1)
