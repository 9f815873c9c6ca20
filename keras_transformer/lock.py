"""Lock of a folder, so that only one process at a time writes into it: a run or an index."""

import contextlib
import datetime
import errno
import json
import os
import pathlib
import socket
import threading
import uuid

try:
    import fcntl
except ImportError:  # Windows has only `lock.json`
    fcntl = None

BEAT = 20.0  # seconds between two heartbeats
SILENCE = 180.0  # seconds without a heartbeat, after which a process elsewhere has ended

_HELD = {errno.EAGAIN, errno.EACCES}
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


class FolderLocked(OSError):
    """Error because another process writes into the folder; its message, one line, names it."""


class FolderLock:
    """Context manager that locks a folder against other processes that write into it.

    Two mechanisms work together, on one machine and on shared file systems:

    - The kernel's lock on `.lock` (`flock`), which ends with the process, even after `kill -9`, so
      that no stale lock is left. Many shared file systems pass it to their server, so that it also
      works between machines.
    - `lock.json`, which names the holder and is touched every `BEAT` seconds. If the file system
      supports locks only on one machine, or not at all, it shows that another machine holds the
      lock, until `SILENCE` seconds after its last heartbeat. Both times come from the file server,
      so that clocks may differ.

    If a process is suspended so long that another one takes over (a sleeping laptop), `check`
    raises an error before the process writes again.

    Args:
        folder: The folder; created if missing.

    Raises:
        FolderLocked: On entry, if another process holds the lock; from `check`, if another process
            has taken it over.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.record = self.folder / "lock.json"
        self._place = self.folder / ".lock"
        self._native = None
        self._own = None
        self._ended = threading.Event()

    def __enter__(self) -> "FolderLock":
        self.folder.mkdir(parents=True, exist_ok=True)
        self._native = self._lock_natively()
        try:
            holder, silent = self._holder()
            if holder is not None:
                if not self._is_over(holder, silent):
                    raise FolderLocked(self._explain(holder, silent))
                self.record.unlink(missing_ok=True)
            self._sign()
        except BaseException:
            self._unlock_natively()
            raise
        threading.Thread(target=self._beat, name="folder lock", daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        with contextlib.suppress(OSError):
            if self._is_own():
                self.record.unlink()
                self._place.unlink()  # before the kernel's lock ends
        self._unlock_natively()

    def check(self) -> None:
        """Raises `FolderLocked` if another process has taken over the folder."""
        holder, silent = self._holder()
        if holder is not None and not self._is_own():
            raise FolderLocked(self._explain(holder, silent))

    def _lock_natively(self):
        """Returns the open file that the kernel locks. `None`: the file system has no locks."""
        if fcntl is None:
            return None
        file = open(self._place, "ab")  # noqa: SIM115 (open as long as the lock is held)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno in _HELD:
                raise FolderLocked(self._explain(*self._holder())) from None
            if error.errno in _NO_LOCKS:
                return None
            raise
        if not os.fstat(file.fileno()).st_nlink:  # the previous holder has just removed the file
            file.close()
            return self._lock_natively()
        return file

    def _unlock_natively(self):
        if self._native is not None:
            self._native.close()

    def _sign(self):
        """Writes `lock.json`, unless another process has just written it."""
        now = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
        self._own = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": now,
            "boot": _boot(),
            "token": uuid.uuid4().hex,
        }
        try:
            with open(self.record, "x", encoding="utf-8") as file:
                file.write(json.dumps(self._own, indent=2) + "\n")
        except FileExistsError:  # two machines at the same moment
            raise FolderLocked(self._explain(*self._holder())) from None

    def _beat(self):
        while not self._ended.wait(BEAT):
            with contextlib.suppress(OSError):
                if self._is_own():
                    os.utime(self.record)

    def _is_own(self):
        return self._own is not None and _read(self.record) == self._own

    def _holder(self):
        """Returns the content of `lock.json`, or `None`, and seconds since the last heartbeat."""
        try:
            then = self.record.stat().st_mtime
            self._place.touch()  # the time of the file server
            return _read(self.record), max(0.0, self._place.stat().st_mtime - then)
        except FileNotFoundError:
            return None, 0.0

    def _is_over(self, holder, silent):
        """Returns `True` if a holder ended without removing its lock: by `kill -9` or a crash."""
        if self._native is not None and holder.get("boot") == _boot():
            return True  # a live holder on this machine would have the kernel's lock
        return silent > SILENCE

    def _explain(self, holder, silent):
        if holder is None:
            return f"{self.folder} is in use by another process, which is just starting or ending."
        who = "another process"
        if {"pid", "host", "since"} <= set(holder):
            who = f"process {holder['pid']} on {holder['host']} since {holder['since']}"
        text = f"{self.folder} is in use by {who}. Wait until it ends, stop it, or choose another"
        text += " folder."
        if holder.get("boot") == _boot() and self._native is None and fcntl is not None:
            return text
        return (
            f"{text} Its last heartbeat was {silent:.0f} seconds ago; after {SILENCE:.0f} seconds "
            "without a heartbeat the same command takes over."
        )


def _read(path):
    """Returns the record of a holder; empty if it cannot be read, for example after a power cut."""
    try:
        record = json.loads(path.read_text("utf-8"))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _boot():
    """Returns an id of this machine until its next start; its containers have the same id."""
    try:
        return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()
