"""Lines that change: redrawn in place on a terminal, and one block after the other anywhere else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

from framegauge.printable import printable

__all__ = ["Screen"]

# ECMA-48, and xterm's alternate screen: what was there before comes back.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[2K", "\x1b[J"


class Screen:
    """A context manager; the terminal is left as it was on every way out, with the last lines below."""

    def __init__(self, stream: TextIO, terminal: str = os.environ.get("TERM", "dumb")) -> None:
        self._stream = stream
        self._live = stream.isatty() and terminal != "dumb"
        self._lines: Sequence[str] = ()

    def size(self) -> tuple[int | None, int | None]:
        """The columns and lines that there are by now; None: as many as one likes."""
        if not self._live:
            return None, None
        columns, lines = os.get_terminal_size(self._stream.fileno())
        return columns or 80, lines or 24  # a terminal of unknown size says 0

    def __enter__(self) -> Screen:
        if self._live:
            self._write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._write(_LEAVE + "".join(f"{line}\n" for line in self._lines))

    def show(self, lines: Sequence[str]) -> None:
        """These lines, which fit into `size`, in the place of those before."""
        before, self._lines = self._lines, [printable(line) for line in lines]
        lines = self._lines
        if self._live:
            # A line is cleared before it is written: after its last column the cursor stands on it.
            self._write(_HOME + "\n".join(_CLEAR_LINE + line for line in lines) + _CLEAR_BELOW)
        else:
            self._write("".join(f"{line}\n" for line in [*([""] if before else []), *lines]))

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
