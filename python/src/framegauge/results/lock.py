"""The lock of a folder in which one process writes at a time (flock), and its removal if it stays unused."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from framegauge.errors import FolderInUse, InputError

__all__ = ["LOCK", "Claim", "is_held"]

LOCK = ".lock"


def is_held(folder: Path, locks: Path = Path("/proc/locks")) -> bool:
    """Whether a process on this machine writes to the folder. It is read and not tried: whoever holds the lock for a
    moment to try it keeps a study from beginning."""
    try:
        inode = (folder / LOCK).stat().st_ino
        lines = locks.read_text().splitlines()
    except OSError:
        return False
    # "1: FLOCK  ADVISORY  WRITE 4711 00:2f:12345 0 EOF"; the device is not always that of stat (overlayfs, Btrfs).
    return any(f":{inode} " in line and " FLOCK " in line for line in lines)


class Claim:
    """A folder, created if necessary, and its lock, which the kernel releases with the process, even on kill -9."""

    def __init__(
        self, folder: Path, disk: Callable[[Path], AbstractContextManager[None]], full: tuple[int, ...]
    ) -> None:
        """Takes the lock; FolderInUse or InputError if that fails. `disk` turns system errors with a code in `full`
        into errors of one line."""
        self.folder = folder
        self._made = [parent for parent in (folder, *folder.parents) if not parent.exists()]  # the deepest first
        with disk(folder):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._lock = _locked(folder / LOCK)
            except OSError as error:
                self._remove_made()
                if error.errno in full:
                    raise
                raise InputError(f"{folder}: cannot be used ({error.strerror}), expected a writable folder") from None
        with contextlib.suppress(OSError):  # the process id is only informative, the lock is what counts
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def forget(self) -> None:
        """Removes the lock's file, and the folders that were created for it if they are empty."""
        (self.folder / LOCK).unlink(missing_ok=True)
        self._remove_made()

    def _remove_made(self) -> None:
        with contextlib.suppress(OSError):
            for path in self._made:
                path.rmdir()

    def free(self) -> None:
        """Releases the lock; may be called twice."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _locked(path: Path) -> int:
    """The descriptor of the lock's file, locked by this process; FolderInUse if another process holds it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise FolderInUse(
                f"{path.parent}: the output folder is in use by process {holder}: wait for it, or choose another --out"
            ) from None
        # The previous holder may have removed the file in between; then this lock would have no effect.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        os.close(handle)
