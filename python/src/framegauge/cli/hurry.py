"""Precedence for the short time in which a command is loaded, since the user waits for its first line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

__all__ = ["NICENESS", "hurried"]

NICENESS = -10  # nine times the weight of what is started as usual


@contextlib.contextmanager
def hurried() -> Iterator[None]:
    """Puts this thread ahead of other programs until the block is left, where that is allowed.

    Beside eight busy loops on two CPUs the libraries of a study take five seconds to load instead of one, and a study
    that cannot be run there is to say so within ten. Whatever is started in the block keeps the precedence, so nothing
    should be.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(before, NICENESS))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before)
