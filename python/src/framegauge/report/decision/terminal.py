"""A decision as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from framegauge.printable import wrapped
from framegauge.report import narrow
from framegauge.report.decision.model import Decision, Part, split
from framegauge.report.decision.sheet import shortened

__all__ = ["show"]


def show(found: Decision, console: Console) -> None:
    """Prints what the page shows."""
    short = shortened(found)
    _sentence(console, short.goal, "bold")
    for text in (short.answer.text, *short.beside):
        _sentence(console, text)
    for part in short.parts:
        console.print()
        _print(console, part.title, "bold")
        for line in _lines(part, console.width):
            _print(console, line)


def _sentence(console: Console, sentence: str, style: str = "") -> None:
    """Another program that reads it finds it whole."""
    for line in wrapped(sentence, console.width) if console.is_terminal else [sentence]:
        _print(console, line, style)


def _lines(part: Part, width: int) -> Iterator[str]:
    if part.rows:
        for line in narrow.aligned(part.head, part.rows, width - 2):
            yield f"  {line}"
    for text, command in map(split, part.lines):
        yield from wrapped(text + (":" if command else ""), width, "  ", "    ")
        if command:  # never broken: it is meant to be copied
            yield f"    {command}"


def _print(console: Console, line: str, style: str = "") -> None:
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
