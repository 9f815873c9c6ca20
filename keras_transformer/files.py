"""Atomic writing of files: each is written as a draft and then put in place. Reading of files."""

import contextlib
import errno
import functools
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

# .NAME.draft-MACHINE-PROCESS-START-RANDOM.SUFFIX identifies the process that writes the draft.
DRAFT = re.compile(r"\..*\.draft-([0-9a-f]{8})-(\d{1,10})-(\d+)-[0-9a-f]{8}(\..+)?")
# A process on another machine cannot be observed: its draft is stale after so long without change.
STALE_SECONDS = 24 * 60 * 60
# Errors of writing to an open file, for which the system does not name the file.
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Generator[Path]:
    """Writes a file under a temporary name beside `path` and puts it in place when it is complete.

    After a crash, a full disk or an exception in the block, `path` still has its previous content.
    Stale drafts in the same folder are removed.

    Args:
        path: The file to write.

    Yields:
        The temporary path that the block must write. It has the suffix of `path`.

    Raises:
        OSError: If the block cannot write, for example because the disk is full. The error names
            `path`.
    """
    path = Path(path)
    remove_stale_drafts(path.parent)
    temporary = draft_of(path)
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)  # the name must also survive a power cut
    except OSError as error:
        if error.errno in WRITE_ERRORS and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: str | os.PathLike, content: bytes) -> None:
    """Writes a file atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: str | os.PathLike, content: str) -> None:
    """Writes a UTF-8 text file atomically."""
    write_bytes(path, content.encode())


def write_json(path: str | os.PathLike, fields: Any) -> None:
    """Writes an indented JSON file atomically."""
    write_text(path, json_text(fields) + "\n")


def json_text(fields: Any, indent: int | None = 2) -> str:
    """Returns JSON, in which a number that is NaN or infinite, which JSON lacks, is `null`."""
    return json.dumps(finite(fields), indent=indent, ensure_ascii=False, allow_nan=False)


def finite(fields: Any) -> Any:
    """Returns plain values with `None` in place of numbers that are NaN or infinite."""
    if isinstance(fields, dict):
        return {key: finite(value) for key, value in fields.items()}
    if isinstance(fields, (list, tuple)):
        return [finite(value) for value in fields]
    if isinstance(fields, float) and not math.isfinite(fields):
        return None
    return fields


def read_bytes(path: str | os.PathLike) -> bytes:
    """Returns the bytes of a file.

    Raises:
        ValueError: If the file cannot be read; the error is one line that names it.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{os.fspath(path)}: cannot be read: {error.strerror}.") from None


def read_json(path: Path, kind: Callable[[Any], Any] = dict) -> Any:
    """Returns the content of a JSON file, converted by `kind`; `None` if there is no file.

    Raises:
        ValueError: If the file is not JSON or cannot be converted.
    """
    if not path.is_file():
        return None
    try:
        return kind(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): put back a copy.") from error


def draft_of(path: str | os.PathLike) -> Path:
    """Returns a path beside `path`, with the same suffix, whose name identifies this process."""
    path = Path(path)
    process = f"{_machine()}-{os.getpid()}-{_start(os.getpid())}"
    return path.with_name(f".{path.stem}.draft-{process}-{secrets.token_hex(4)}{path.suffix}")


def stale_drafts(folder: str | os.PathLike) -> list[Path]:
    """Returns the drafts in a folder, files and folders, that no running process writes.

    Args:
        folder: A folder. If it does not exist or cannot be read, the result is empty.
    """
    try:
        paths = sorted(path for path in Path(folder).iterdir() if DRAFT.fullmatch(path.name))
    except OSError:
        return []
    return [path for path in paths if _is_stale(path)]


def remove_stale_drafts(folder: str | os.PathLike) -> None:
    """Removes the drafts that killed processes left in a folder.

    Drafts of running processes stay, as several may write to one folder at a time. A draft that
    cannot be removed is ignored.
    """
    for path in stale_drafts(folder):
        _remove(path)


def remove_own_drafts(folder: str | os.PathLike) -> None:
    """Removes the drafts of this process from a folder, which need not exist."""
    own = f".draft-{_machine()}-{os.getpid()}-{_start(os.getpid())}-"
    with contextlib.suppress(OSError):
        for path in Path(folder).iterdir():
            if DRAFT.fullmatch(path.name) and own in path.name:
                _remove(path)


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def sync(path: Path) -> None:
    """Waits until a file or a folder is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a folder
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_stale(draft: Path) -> bool:
    match = DRAFT.fullmatch(draft.name)
    if match is None:
        return False
    machine, process, start, _ = match.groups()
    if machine == _machine() and os.name != "nt":  # on Windows, `os.kill` would end the process
        return not _runs(int(process), int(start))
    try:
        changed = max(path.lstat().st_mtime for path in [draft, *draft.rglob("*")])
    except OSError:  # it disappears while we look at it, so its writer is at work
        return False
    return time.time() - changed > STALE_SECONDS


def _runs(process: int, start: int) -> bool:
    """Returns whether the process that began at `start` still runs; process numbers are reused."""
    try:
        os.kill(process, 0)  # signal 0 only checks
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it runs and belongs to another user
        pass
    return _start(process) in (start, 0)


def _start(process: int) -> int:
    """Returns the start time of a process in ticks; 0 if unknown, -1 if it has been killed."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2]
    except OSError:
        return 0
    state, *rest = fields.split()
    return -1 if state in "ZX" else int(rest[18])  # a zombie only waits for its parent


@functools.cache
def _machine() -> str:
    """Returns a name for this boot of the machine, or for the container.

    Process numbers are unique within it: on a shared file system, process 17 of one machine is not
    process 17 of another.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        name = boot + os.readlink("/proc/self/ns/pid")
    except OSError:
        name = socket.gethostname()
    return hashlib.sha256(name.encode()).hexdigest()[:8]
