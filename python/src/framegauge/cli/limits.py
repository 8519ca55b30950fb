"""What ends a command because this machine has no more of something, or does not let it write, in one line."""

from __future__ import annotations

import errno
import os

__all__ = ["reached"]

# What CPython says where the kernel has no thread for it (_thread.start_new_thread): it keeps no number.
NO_THREAD = "can't start new thread"
PROCESSES = "no process or thread more, expected some: a limit of this user (ulimit -u) or of its cgroup (pids.max)"
MEMORY = "no memory left, expected some: a limit of this user (ulimit -v), or all of this machine's is used"
FILES = "no descriptor more, expected some: a limit of this user (ulimit -n) or of this machine (fs.file-max)"
# Of a place that has a name: who keeps folders and disks decides it, and no line of this program.
_OF_PLACES = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG,
    errno.ELOOP,
)  # fmt: skip
_FULL = (errno.ENOSPC, errno.EDQUOT)
_BY_NUMBER = {errno.EAGAIN: PROCESSES, errno.ENOMEM: MEMORY, errno.EMFILE: FILES, errno.ENFILE: FILES}


def reached(error: BaseException) -> str | None:
    """The line; None for an error with another reason."""
    if isinstance(error, OSError) and error.errno in _OF_PLACES and error.filename is not None:
        return f"{error.filename}: cannot be used ({error.strerror}), expected a place that can be"
    if isinstance(error, OSError) and error.errno in _FULL:  # as a file raises it that is open
        return f"found no room left ({error.strerror}), expected some for results and for temporary files (TMPDIR)"
    if isinstance(error, FileNotFoundError) and error.filename is None:
        if error.strerror == os.strerror(errno.ENOENT):  # as os.getcwd() raises it
            return "found no working folder (it was deleted), expected one"
        return f"{error.strerror}, expected one that can be written to and has room (TMPDIR)"  # as tempfile raises it
    if isinstance(error, MemoryError):
        return f"found {MEMORY}"
    if isinstance(error, RuntimeError) and NO_THREAD in str(error):
        return f"found {PROCESSES}"
    limit = _BY_NUMBER.get(error.errno or 0) if isinstance(error, OSError) else None
    return None if limit is None else f"found {limit}"
