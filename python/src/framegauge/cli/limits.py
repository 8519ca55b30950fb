"""What ends a command because a limit of this machine is reached, in one line."""

from __future__ import annotations

import errno

__all__ = ["reached"]

# What CPython says where the kernel has no thread for it (_thread.start_new_thread): it keeps no number.
NO_THREAD = "can't start new thread"
PROCESSES = "no process or thread more, expected some: a limit of this user (ulimit -u) or of its cgroup (pids.max)"
MEMORY = "no memory left, expected some: a limit of this user (ulimit -v), or all of this machine's is used"
FILES = "no descriptor more, expected some: a limit of this user (ulimit -n) or of this machine (fs.file-max)"
_BY_NUMBER = {errno.EAGAIN: PROCESSES, errno.ENOMEM: MEMORY, errno.EMFILE: FILES, errno.ENFILE: FILES}


def reached(error: BaseException) -> str | None:
    """The line; None for an error with another reason."""
    if isinstance(error, MemoryError):
        return f"found {MEMORY}"
    if isinstance(error, RuntimeError) and NO_THREAD in str(error):
        return f"found {PROCESSES}"
    found = _BY_NUMBER.get(error.errno or 0) if isinstance(error, OSError) else None
    return None if found is None else f"found {found}"
