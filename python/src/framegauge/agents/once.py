"""An event that can be waited for by a thread that signals interrupt."""

from __future__ import annotations

import threading

__all__ = ["Once"]


class Once:
    """An event that happens once, for one thread that waits. It can be interrupted at any moment.

    threading.Event cannot: a signal's exception between taking its lock and entering the block leaves the lock held,
    and whoever sets it would wait for ever.
    """

    def __init__(self) -> None:
        self._lock, self._is_set = threading.Lock(), False
        self._lock.acquire()

    def set(self) -> None:
        """It has happened; called by one thread alone."""
        if not self._is_set:
            self._is_set = True
            self._lock.release()

    def wait(self, timeout_seconds: float | None) -> bool:
        """Whether it has happened within this time, None for ever."""
        return self._is_set or self._lock.acquire(timeout=-1 if timeout_seconds is None else max(0.0, timeout_seconds))
