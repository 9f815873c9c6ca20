"""Child processes that end with their parent, even if the parent is killed."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

# Runs a module as a program. Python itself would search the working directory first, which may be
# any folder.
START = """
import sys
sys.path[:] = filter(None, sys.path)
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal to receive when the parent has ended


def program(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module as a program with this Python."""
    return [sys.executable, "-c", START, module, *arguments]


def environment() -> dict[str, str]:
    """Returns the environment variables of a program that imports the same modules as this one.

    The program does not see graphics processors, whose memory belongs to this process.
    """
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "CUDA_VISIBLE_DEVICES": "-1",
    }


def available() -> bool:
    """Returns whether this process can start `program`s: not if it is no ordinary Python."""
    name = os.path.basename(sys.executable or "")
    return "py" in name.lower() and not getattr(sys, "frozen", False)


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


def failure(what: str, status: int, log: bytes) -> str:
    """Returns the message about a process that ended too early.

    Args:
        what: The process, the beginning of the sentence.
        status: Its exit status.
        log: What it wrote on stderr, of which the last line is shown.
    """
    lines = log.decode("utf-8", "replace").split("\n")
    reason = next((line for line in reversed(lines) if line.strip()), "")
    return f"{what} ended with {status}; perhaps there is not enough memory. {reason}".strip()


def end_with_parent(read: Callable[[], object] | None = None, *, with_thread: bool = True) -> None:
    """Lets this process, a child with a pipe from its parent as stdin, end when its parent ends.

    The end of stdin shows on every system that the parent has ended, but a thread only notices it
    when no C++ code holds Python's lock. On Linux the system itself can kill the process, which it
    does as soon as the parent's thread that started this process has ended.

    Args:
        read: Function that reads stdin up to its end. `None`: what it contains is ignored.
        with_thread: Whether the system may kill the process, and therefore whether it ends with
            that thread.
    """
    threading.Thread(target=_exit_at_end_of_stdin, args=[read or _ignore], daemon=True).start()
    if not with_thread:
        threading.Thread(target=_exit_without, args=[os.getppid()], daemon=True).start()
    elif sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):  # a C library without prctl
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _exit_at_end_of_stdin(read):
    try:
        read()
    finally:
        os._exit(1)


def _exit_without(parent):
    """Ends this process after its parent; a fork of the parent may keep the pipe open."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _ignore():
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
