"""Temporary folders that say who made them, and do not outlast their owner: they go on every way out, and after
`kill -9` at the next start.

The name has the owner's process id, for people. A lock says whether the owner is alive (flock): the kernel takes it
away when the process ends, whoever has its id by then, and in whatever PID namespace it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Folder", "folder", "sweep"]

PREFIX = "framegauge-of-"


class Folder:
    """A new folder of this process; `remove` must be called at the end."""

    def __init__(self) -> None:
        # Whoever sweeps before it is locked takes it for one of the dead.
        while not self._made():
            pass

    def _made(self) -> bool:
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        try:
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # it is being swept
            os.close(self._lock)
            return False
        except OSError:  # a file system without locks: nobody sweeps it either
            pass
        if self.path.is_dir():
            return True
        os.close(self._lock)
        return False

    def remove(self) -> None:
        """Removes it with all that it holds; may be called twice."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A new folder, removed when the block is left."""
    made = Folder()
    try:
        yield made.path
    finally:
        made.remove()


def sweep() -> None:
    """Removes this user's folders whose owners are dead. Whatever cannot be removed stays."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    _sweep(entry.path)


def _sweep(path: str) -> None:
    """Removes a folder unless its owner lives; OSError if it does, or is another user."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid == os.geteuid():
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)
