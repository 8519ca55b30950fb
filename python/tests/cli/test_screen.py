"""Lines that change, on a real terminal and where there is none."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from framegauge.cli.screen import Screen


@pytest.fixture
def terminal() -> Iterator[tuple[int, TextIO]]:
    """Both ends of one."""
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as stream:
        yield ours, stream
    os.close(ours)


def written(ours: int, stream: TextIO) -> bytes:
    """All that came."""
    stream.close()
    found = b""
    with contextlib.suppress(OSError):  # what a terminal says when nobody has its other end
        while piece := os.read(ours, 1000):
            found += piece
    return found


def test_plain_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with Screen(stream, "xterm") as screen:
        assert screen.size() == (None, None)
        screen.show(["a", "b"])
        screen.show(["c"])
    assert stream.getvalue() == "a\nb\n\nc\n"


def test_a_dumb_terminal_has_plain_lines_too(terminal: tuple[int, TextIO]) -> None:
    ours, stream = terminal
    with Screen(stream, "dumb") as screen:
        screen.show(["a"])
    assert written(ours, stream) == b"a\r\n"


def test_a_terminal_is_drawn_in_place_and_restored(terminal: tuple[int, TextIO]) -> None:
    ours, stream = terminal
    with contextlib.suppress(KeyboardInterrupt), Screen(stream, "xterm") as screen:
        screen.show(["one", "two"])
        screen.show(["three"])
        raise KeyboardInterrupt
    assert written(ours, stream).split(b"\x1b[H") == [
        b"\x1b[?1049h\x1b[?25l",  # the alternate screen, without a cursor
        b"\x1b[2Kone\r\n\x1b[2Ktwo\x1b[J",
        # What is below goes; after the end the first screen, the cursor, and the last lines.
        b"\x1b[2Kthree\x1b[J\x1b[?25h\x1b[?1049lthree\r\n",
    ]


def test_the_size_is_that_of_the_moment(terminal: tuple[int, TextIO]) -> None:
    _, stream = terminal
    screen = Screen(stream, "xterm")
    for lines, columns in ((30, 100), (10, 40)):
        fcntl.ioctl(stream.fileno(), termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))
        assert screen.size() == (columns, lines)
    fcntl.ioctl(stream.fileno(), termios.TIOCSWINSZ, struct.pack("4H", 0, 0, 0, 0))
    assert screen.size() == (80, 24)
