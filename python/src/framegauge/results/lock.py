"""A folder in which one process writes at a time (flock), and what of it goes again when nothing came of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from framegauge.errors import FolderInUse, InputError

__all__ = ["LOCK", "Claim"]

LOCK = ".lock"


class Claim:
    """The folder, made if it is not there, and its lock, which the kernel frees with the process, also on kill -9."""

    def __init__(
        self, folder: Path, disk: Callable[[Path], AbstractContextManager[None]], full: tuple[int, ...]
    ) -> None:
        """FolderInUse or InputError if it cannot be had. `disk` turns errors of the system, those of `full`, into one
        line."""
        self.folder = folder
        self._made = [each for each in (folder, *folder.parents) if not each.exists()]  # the deepest first
        with disk(folder):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._lock = _locked(folder / LOCK)
            except OSError as error:
                self._remove_made()
                if error.errno in full:
                    raise
                raise InputError(f"{folder}: found no folder to write in ({error.strerror}), expected one") from None
        with contextlib.suppress(OSError):  # the number is a courtesy, the lock is what counts
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def forget(self) -> None:
        """Take away the lock's file, and the folders that were made for it if nothing else is in them."""
        (self.folder / LOCK).unlink(missing_ok=True)
        self._remove_made()

    def _remove_made(self) -> None:
        with contextlib.suppress(OSError):
            for each in self._made:
                each.rmdir()

    def free(self) -> None:
        """Let others write. Twice is once."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _locked(path: Path) -> int:
    """The file, locked by this process; FolderInUse if another has it."""
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
        # Whoever had it may have taken its file away in between: then this lock keeps nobody out.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        os.close(handle)
