"""Filter for what C++ libraries write on stderr, which Python cannot redirect."""

import atexit
import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Generator

_LOCK = threading.RLock()  # two threads that replaced the same descriptor would lose it


@contextlib.contextmanager
def filtered_log(shown: Callable[[bytes], bytes]) -> Generator[None]:
    """Holds back what the block writes on stderr, and writes part of it when the block ends.

    After an exception everything is written. Nothing is filtered without a stderr, as in a program
    without a console, or without a folder for temporary files, as in a read-only container. What
    other threads write in the meantime is held back and filtered as well.

    Args:
        shown: Function that returns the part of the text to show.
    """
    with _LOCK, contextlib.ExitStack() as files:
        held = _held_back(files)
        try:
            yield
        except BaseException:
            shown = bytes  # all lines
            raise
        finally:
            if held is not None:
                stderr, log = held
                os.dup2(stderr, 2)
                log.seek(0)
                os.write(2, shown(log.read()))


def _held_back(files):
    """Redirects stderr to a file.

    Args:
        files: The `contextlib.ExitStack` that closes the descriptors.

    Returns:
        The descriptor of stderr, and the file; `None` if one of them cannot be opened.
    """
    try:
        stderr = os.dup(2)
        files.callback(os.close, stderr)
        log = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
    except OSError:
        return None
    os.dup2(log.fileno(), 2)
    return stderr, log


def end_silently() -> None:
    """Discards what C++ libraries write while the process ends; Python's messages are kept."""
    atexit.register(_keep_only_python)


def _keep_only_python():
    with contextlib.suppress(OSError):
        sys.stderr.flush()
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
