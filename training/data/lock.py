"""The lock of a run: one training at a time writes into its folder."""

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
except ImportError:  # Windows: the record alone
    fcntl = None

BEAT = 20.0  # seconds between two signs of life
SILENCE = 180.0  # seconds without one, after which a training on another machine is over

_HELD = {errno.EAGAIN, errno.EACCES}
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


class RunLocked(OSError):
    """Another training writes into the folder; the message names it, in one line."""


class RunLock:
    """Keeps every other training out of the folder of a run. A context manager.

    Two things together are right on one machine and on a shared file system:

    - The kernel's lock on `.lock` (`flock`), which ends with the process, even by `kill -9`:
      nothing is ever left to be recognised. Many shared file systems hand it on to their server, so
      that it also holds between machines.
    - `lock.json`, which names the holder and is touched every `BEAT` seconds. Where the file system
      keeps locks within one machine, or has none, a holder elsewhere is known by it, until it has
      been silent for `SILENCE` seconds. Both times are the file server's: clocks may differ.

    A process that slept so long that another one took its place (a suspended laptop) learns it from
    `check` before it writes.

    Args:
        folder: Folder of the run; created if missing.

    Raises:
        RunLocked: On entering, if another training holds the lock; from `check`, if it took it.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.record = self.folder / "lock.json"
        self._place = self.folder / ".lock"
        self._native = None
        self._own = None
        self._ended = threading.Event()

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self._native = self._lock_natively()
        try:
            holder, silent = self._holder()
            if holder is not None:
                if not self._is_over(holder, silent):
                    raise RunLocked(self._explain(holder, silent))
                self.record.unlink(missing_ok=True)
            self._sign()
        except BaseException:
            self._unlock_natively()
            raise
        threading.Thread(target=self._beat, name="run lock", daemon=True).start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        with contextlib.suppress(OSError):
            if self._is_own():
                self.record.unlink()
                self._place.unlink()  # while the kernel still locks it
        self._unlock_natively()

    def check(self):
        """Raises `RunLocked` if another training has taken the folder over."""
        holder, silent = self._holder()
        if holder is not None and not self._is_own():
            raise RunLocked(self._explain(holder, silent))

    def _lock_natively(self):
        """The open file that the kernel locks, or `None` where the file system has no locks."""
        if fcntl is None:
            return None
        file = open(self._place, "ab")  # noqa: SIM115 (open as long as the lock is held)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno in _HELD:
                raise RunLocked(self._explain(*self._holder())) from None
            if error.errno in _NO_LOCKS:
                return None
            raise
        if not os.fstat(file.fileno()).st_nlink:  # the holder before removed it in this moment
            file.close()
            return self._lock_natively()
        return file

    def _unlock_natively(self):
        if self._native is not None:
            self._native.close()

    def _sign(self):
        """Writes who holds the lock, unless somebody else has done so."""
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
            raise RunLocked(self._explain(*self._holder())) from None

    def _beat(self):
        while not self._ended.wait(BEAT):
            with contextlib.suppress(OSError):
                if self._is_own():
                    os.utime(self.record)

    def _is_own(self):
        return self._own is not None and _read(self.record) == self._own

    def _holder(self):
        """Who signed, `None` if nobody did, and for how many seconds there was no sign of life."""
        try:
            then = self.record.stat().st_mtime
            self._place.touch()  # the time of the file server
            return _read(self.record), max(0.0, self._place.stat().st_mtime - then)
        except FileNotFoundError:
            return None, 0.0

    def _is_over(self, holder, silent):
        """Whether a holder has ended without a word: by `kill -9` or with its machine."""
        if self._native is not None and holder.get("boot") == _boot():
            return True  # the kernel would know of it
        return silent > SILENCE

    def _explain(self, holder, silent):
        if holder is None:
            return f"{self.folder} is in use by another training, which begins or ends right now."
        who = "another training"
        if {"pid", "host", "since"} <= set(holder):
            who += f", process {holder['pid']} on {holder['host']} since {holder['since']}"
        text = f"{self.folder} is in use by {who}. Wait for its end, stop it, or choose another"
        text += " folder."
        if holder.get("boot") == _boot() and self._native is None and fcntl is not None:
            return text
        return (
            f"{text} Its last sign of life was {silent:.0f} seconds ago; after {SILENCE:.0f} "
            "seconds without one the same command goes on."
        )


def _read(path):
    """The record of a holder; empty if it cannot be read, as after a power cut."""
    try:
        record = json.loads(path.read_text("utf-8"))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _boot():
    """What names this machine until it is started again; shared by its containers."""
    try:
        return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()
