"""Tables on narrow terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from framegauge.printable import wrapped

__all__ = ["aligned", "stacked"]

LEAST = 24  # columns for a last column of text, which wraps


def stacked(columns: Sequence[str], row: Sequence[str], width: int) -> Iterator[str]:
    """A row where a table does not fit: its first cell, then a line for each other one under it, with its title."""
    yield from wrapped(row[0], width)
    for title, cell in zip(columns[1:], row[1:], strict=True):
        if cell:
            line = f"{title}: {cell}" if title else cell
            yield from wrapped(line, max(10, width), "  ", "    ")


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """A table of left-aligned columns, the last of which wraps; rows that do not fit are stacked."""
    widths = [max(map(len, column)) for column in zip(*([columns, *rows]), strict=True)]
    indent = sum(widths[:-1]) + 2 * len(widths[:-1])
    if width - indent < min(LEAST, widths[-1]):
        for row in rows:
            yield from stacked(columns, row, width)
        return
    for row in [columns, *rows]:
        head = "".join(cell.ljust(size) + "  " for cell, size in zip(row[:-1], widths[:-1], strict=True))
        for index, piece in enumerate(wrapped(row[-1], width - indent) or [""]):
            yield (" " * indent if index else head) + piece
