"""Standard streams whose end is no error of ours: the reader has left, the disk is full, or nobody has opened it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO

__all__ = ["Enduring", "endure"]


class Enduring(io.RawIOBase):
    """A file descriptor that takes everything. What cannot be written is dropped: the exit code is an answer, too."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.has_left = False  # whether the reader has
        self.trouble = ""  # what else was wrong

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        """Writes what can be written; the number of bytes taken, written or not."""
        if not self.has_left and not self.trouble:
            try:
                return os.write(self._descriptor, data)
            except BrokenPipeError:
                self.has_left = True
            except OSError as error:
                self.trouble = error.strerror or str(error)
        return memoryview(data).nbytes


def endure() -> None:
    """Has standard output and standard error endure their end. What a test has put in their place stays as it is."""
    sys.stdout = _enduring(sys.stdout, sys.__stdout__)
    sys.stderr = _enduring(sys.stderr, sys.__stderr__)


def _enduring(text: TextIO | None, original: TextIO | None) -> TextIO:
    if text is None:  # it was closed when this started
        return open(os.devnull, "w", encoding="utf-8")  # for as long as this process
    buffer = getattr(text, "buffer", None)
    raw = getattr(buffer, "raw", buffer)  # there is no buffer in between with PYTHONUNBUFFERED
    if not isinstance(text, io.TextIOWrapper) or type(raw) is not io.FileIO or text is not original:
        return text
    by_line = text.line_buffering or raw is buffer
    with contextlib.suppress(OSError):
        text.flush()
    taking_all: io.RawIOBase = Enduring(raw.fileno())
    return io.TextIOWrapper(io.BufferedWriter(taking_all), text.encoding, text.errors, line_buffering=by_line)
