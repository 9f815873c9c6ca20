"""Control over C++ code in this process: its output on stderr, and signals during long calls."""

import atexit
import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator

from keras_transformer.files import remove_own_drafts

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


SECONDS = 1.5  # for an orderly end
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def ends_promptly(*folders: str | os.PathLike, seconds: float = SECONDS) -> Generator[None]:
    """Lets Ctrl-C and SIGTERM end this process soon while the block works.

    Python handles a signal when the main thread runs Python code again. A call of TensorFlow may
    take minutes before that. If the block has not ended some seconds after a signal, the process
    removes its drafts and the folders that it has created for them. It then ends with the status
    that shells expect.

    Args:
        folders: Folders that may contain drafts, and that may not exist yet.
        seconds: Time for an orderly end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ended = threading.Event()
    new = [folder for folder in folders if not os.path.exists(folder)]

    def end(number):
        if ended.wait(seconds):
            return
        for folder in folders:
            remove_own_drafts(folder)
        for folder in new:
            with contextlib.suppress(OSError):  # it is missing or not empty
                os.rmdir(folder)
        os._exit(128 + number)

    with _watching_signals(end):
        try:
            yield
        finally:
            ended.set()


@contextlib.contextmanager
def ends_at_once() -> Generator[None]:
    """Lets Ctrl-C and SIGTERM end this process at once, with one line, while the block works.

    It is for work that leaves nothing to tidy up, such as loading a model. A handler that the block
    installs for a signal replaces this one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stderr = os.dup(2)  # `filtered_log` may hold back what the block writes
    once = threading.Lock()

    def end(number, frame=None):
        if once.acquire(blocking=False):
            with contextlib.suppress(OSError):
                os.write(stderr, f"Stopped by {signal.Signals(number).name}.\n".encode())
            os._exit(128 + number)

    def end_unless_replaced(number):
        if signal.getsignal(number) is end:
            end(number)

    heard = [one for one in SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heard}
    try:
        with _watching_signals(end_unless_replaced):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(stderr)


@contextlib.contextmanager
def _watching_signals(arrived):
    """Calls a function with the number of each signal, in a thread, while the block works."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def watch():
        for number in iter(lambda: os.read(reading, 1), b""):
            if number[0] in SIGNALS:
                arrived(number[0])
        os.close(reading)

    threading.Thread(target=watch, daemon=True).start()
    # The interpreter writes the numbers of signals into the pipe as soon as they arrive.
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
