"""Files that are whole or not there, and the drafts that they are written as."""

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import time
from pathlib import Path

# .NAME.draft-MACHINE-PROCESS-START-RANDOM.SUFFIX: which process writes it.
DRAFT = re.compile(r"\..*\.draft-([0-9a-f]{8})-(\d{1,10})-(\d+)-[0-9a-f]{8}(\..+)?")
# Whether a process of another machine still runs cannot be seen: its draft is stale when nothing
# in it has changed for so long.
STALE_SECONDS = 24 * 60 * 60
# Of writing to an open file: the system does not name the file.
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextlib.contextmanager
def replacing(path):
    """Writes a file under a temporary name beside `path` and puts it in place when it is complete.

    A crash, a full disk or an exception in the block leaves what was at `path` before. What killed
    processes left in the same folder is removed.

    Args:
        path: The file to write.

    Yields:
        The temporary path, with the same suffix, to be written by the block.

    Raises:
        OSError: If the block cannot write, for example because the disk is full; it names `path`.
    """
    path = Path(path)
    remove_stale_drafts(path.parent)
    temporary = draft_of(path)
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)  # the name itself must also survive a power cut
    except OSError as error:
        if error.errno in WRITE_ERRORS and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path, content):
    """Replaces a file by `content`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path, content):
    """Replaces a file by `content` in UTF-8, whole or not at all."""
    write_bytes(path, content.encode())


def write_json(path, fields):
    """Writes a file of JSON, which is replaced whole."""
    write_text(path, json.dumps(fields, indent=2, ensure_ascii=False) + "\n")


def read_json(path, kind=dict):
    """Returns what `kind` makes of the content of a JSON file; `None` where there is no file.

    Raises:
        ValueError: If it is damaged.
    """
    if not path.is_file():
        return None
    try:
        return kind(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): put back a copy.") from error


def draft_of(path):
    """Returns a path beside `path`, with the same suffix, whose name identifies its writer."""
    path = Path(path)
    process = f"{_machine()}-{os.getpid()}-{_start(os.getpid())}"
    return path.with_name(f".{path.stem}.draft-{process}-{secrets.token_hex(4)}{path.suffix}")


def stale_drafts(folder):
    """Returns the drafts in a folder, files and folders, that no running process writes.

    Args:
        folder: A folder. Where it is missing or cannot be read there are none.
    """
    try:
        paths = sorted(path for path in Path(folder).iterdir() if DRAFT.fullmatch(path.name))
    except OSError:
        return []
    return [path for path in paths if _is_stale(path)]


def remove_stale_drafts(folder):
    """Removes what killed processes left of files and folders that were to be placed in `folder`.

    The drafts of a process that still runs stay: several may write to one folder at a time. Nothing
    is raised if a draft cannot be removed.
    """
    for path in stale_drafts(folder):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()


def sync(path):
    """Waits until a file or a folder is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a folder
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_stale(draft):
    machine, process, start, _ = DRAFT.fullmatch(draft.name).groups()
    if machine == _machine() and os.name != "nt":  # Windows has no question that does no harm
        return not _runs(int(process), int(start))
    try:
        changed = max(path.lstat().st_mtime for path in [draft, *draft.rglob("*")])
    except OSError:  # it goes away while we look at it: somebody is at work
        return False
    return time.time() - changed > STALE_SECONDS


def _runs(process, start):
    """Whether a process runs that began at `start`: numbers are used again."""
    try:
        os.kill(process, 0)  # signal 0 only checks
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it runs, for another user
        pass
    return _start(process) in (start, 0)


def _start(process):
    """When a process began, in ticks; 0 where the system does not show it; -1 if it was killed."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2]
    except OSError:
        return 0
    state, *rest = fields.split()
    return -1 if state in "ZX" else int(rest[18])  # a zombie waits for its parent only


@functools.cache
def _machine():
    """A name for the machine since it was started, or for the container: where numbers are unique.

    On a shared file system process 17 of one machine is not process 17 of another.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        name = boot + os.readlink("/proc/self/ns/pid")
    except OSError:
        name = socket.gethostname()
    return hashlib.sha256(name.encode()).hexdigest()[:8]
