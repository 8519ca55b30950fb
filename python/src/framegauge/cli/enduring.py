"""Standard output whose end is no error of ours: the reader has left, the disk is full, or nobody has opened it."""

from __future__ import annotations

import io
import os
import sys

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
    """Has standard output endure its end. What a test has put in its place stays as it is."""
    if sys.stdout is None:  # it was closed when this started
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for as long as this process)
    buffer = getattr(sys.stdout, "buffer", None)
    raw, text = getattr(buffer, "raw", buffer), sys.stdout  # there is no buffer in between with PYTHONUNBUFFERED
    if isinstance(text, io.TextIOWrapper) and type(raw) is io.FileIO and text is sys.__stdout__:
        encoding, by_line, at_once = text.encoding, text.line_buffering, raw is buffer
        text.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(Enduring(raw.fileno())), encoding, line_buffering=by_line or at_once
        )
