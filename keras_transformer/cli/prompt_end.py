"""Signals that end a command soon, even during a long call of C++ code."""

import contextlib
import os
import signal
import threading
from collections.abc import Generator

from keras_transformer.files import remove_own_drafts

SECONDS = 1.5  # for an orderly end
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def ends_promptly(*folders: str | os.PathLike, seconds: float = SECONDS) -> Generator[None]:
    """Lets Ctrl-C and SIGTERM end this process soon while the block works.

    Python handles a signal when the main thread runs Python code again. A call of TensorFlow may
    take minutes before that. If the block has not ended some seconds after a signal, the drafts of
    this process and the folders that it has created for them are removed, and it ends with the
    status that shells expect.

    Args:
        folders: Folders that may contain drafts, and that may not exist yet.
        seconds: Time for an orderly end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    ended = threading.Event()
    new = [folder for folder in folders if not os.path.exists(folder)]

    def watch():
        for number in iter(lambda: os.read(reading, 1), b""):
            if number[0] in SIGNALS and not ended.wait(seconds):
                for folder in folders:
                    remove_own_drafts(folder)
                for folder in new:
                    with contextlib.suppress(OSError):  # it is missing or not empty
                        os.rmdir(folder)
                os._exit(128 + number[0])
        os.close(reading)

    threading.Thread(target=watch, daemon=True).start()
    # The interpreter writes the numbers of signals into the pipe as soon as they arrive.
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(writing)
