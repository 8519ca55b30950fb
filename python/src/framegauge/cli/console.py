"""The console of rich for text from outside: only what rich itself adds is an escape sequence."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from framegauge.printable import printable

__all__ = ["PrintableConsole", "console"]


class PrintableConsole(Console):
    """Prints every text with what cannot be printed replaced, and texts given to `print` as one line each."""

    def print(self, *objects: Any, **how: Any) -> None:
        """As of rich; a line end within a text is a space."""
        super().print(*map(_one_line, objects), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As of rich, which calls this for everything that it shows, and adds colours afterwards."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text.isprintable() or text == "\n":
                yield segment
            else:
                yield Segment("\n".join(map(printable, text.split("\n"))), segment.style)


def _one_line(shown: object) -> object:
    if isinstance(shown, Text) and not shown.plain.isprintable():
        shown = shown.copy()
        shown.plain = _joined(shown.plain)
    return _joined(shown) if isinstance(shown, str) else shown


def _joined(text: str) -> str:
    return printable(text.replace("\n", " "))  # as long as before, so that styles stay where they are


def console(least_columns: int = 0, stderr: bool = False) -> PrintableConsole:
    """A console for standard output, or standard error. Where it is no terminal, and nobody has said how wide it is,
    it has so many columns at least."""
    usual_console = PrintableConsole(stderr=stderr)
    if usual_console.is_terminal or usual_console.width >= least_columns or os.environ.get("COLUMNS", "").isdecimal():
        return usual_console
    return PrintableConsole(stderr=stderr, width=least_columns)
