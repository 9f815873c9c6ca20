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

    After an exception everything is written. Without a stderr, as in a program without a console,
    nothing is filtered.

    Args:
        shown: Function that returns the part of the text to show.
    """
    with _LOCK:
        try:
            stderr = os.dup(2)
        except OSError:
            yield
            return
        with tempfile.TemporaryFile() as log:
            os.dup2(log.fileno(), 2)
            try:
                yield
            except BaseException:
                shown = bytes  # all lines
                raise
            finally:
                os.dup2(stderr, 2)
                os.close(stderr)
                log.seek(0)
                os.write(2, shown(log.read()))


def end_silently() -> None:
    """Discards what C++ libraries write while the process ends; Python's messages are kept."""
    atexit.register(_keep_only_python)


def _keep_only_python():
    with contextlib.suppress(OSError):
        sys.stderr.flush()
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
