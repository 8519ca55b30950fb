"""The end of what a process writes to standard error. That a host writes without end costs nothing here."""

from __future__ import annotations

import os
import select
import threading

from framegauge.printable import one_line

__all__ = ["KEPT_BYTES", "LastWords", "last_lines"]

KEPT_BYTES = 1 << 16
LINES, SHOWN_BYTES = 4, 2000
DRAINED = 64  # reads after the process has ended: what it started may still write


class LastWords:
    """A pipe for standard error, whose end a thread keeps. `close` ends the thread."""

    def __init__(self) -> None:
        self._output, self.input = os.pipe()
        self._wake = os.eventfd(0)
        self._kept = b""
        self._thread = threading.Thread(target=self._drain, name="last words", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        poller = select.poll()
        poller.register(self._output, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        left = None
        while left is None or left > 0:
            events = dict(poller.poll(None if left is None else 0))
            if self._output in events:
                piece = os.read(self._output, KEPT_BYTES)
                self._kept = (self._kept + piece)[-KEPT_BYTES:]
                if not piece:
                    return
            elif left is not None:
                return
            if self._wake in events and left is None:
                poller.unregister(self._wake)
                left = DRAINED
            elif left is not None:
                left -= 1

    def end(self) -> bytes:
        """What was kept; to be called when the process has ended, or nothing more is wanted of it."""
        if self._thread.is_alive():
            os.eventfd_write(self._wake, 1)
            self._thread.join()
        return self._kept

    def close(self) -> None:
        """Ends the thread and closes the pipe."""
        self.end()
        os.close(self._output)
        os.close(self._wake)


def last_lines(data: bytes) -> str:
    """The last lines of standard error, joined into one that can be printed."""
    lines = data[-SHOWN_BYTES:].decode("utf-8", "replace").split("\n")
    return "; ".join(one_line(line) for line in lines[-LINES:] if line.strip())
