"""Files that are whole or not there."""

import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def replacing(path):
    """Writes a file under a temporary name beside `path` and puts it in place when it is complete.

    A crash, a full disk or an exception in the block leaves what was at `path` before.

    Args:
        path: The file to write.

    Yields:
        The temporary path, with the same suffix, to be written by the block.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)  # the name itself must survive a power cut, too
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path, content):
    """Replaces a file by `content`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path, content):
    """Replaces a file by `content` in UTF-8, whole or not at all."""
    write_bytes(path, content.encode())


def sync(path):
    """Waits until a file or a folder is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a folder
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
