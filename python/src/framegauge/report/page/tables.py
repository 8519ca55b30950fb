"""Tables of every page: on a phone each row is a card, so that nothing lies beyond the edge (assets/cards.css)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files

from framegauge.printable import prose as text

__all__ = ["Html", "style", "table"]

Html = str | tuple[str, str]  # of a cell, or that and the cell's class


def style() -> str:
    """What makes cards of rows, for the style of a page."""
    return files("framegauge.report.page").joinpath("assets", "cards.css").read_text(encoding="utf-8")


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Html]], look: str = "") -> str:
    """A table whose first column names the row, in a region that the keyboard can scroll; empty without rows. A head
    of empty names is left out. Each cell has the name of its column, which its card shows."""
    body = "".join(f"<tr>{_row(head, row)}</tr>\n" for row in rows)
    if not body:
        return ""
    head_cells = "".join(f'<th scope="col">{text(name)}</th>' for name in head)
    top = f"<thead><tr>{head_cells}</tr></thead>\n" if any(head) else ""
    return (
        f'<div class="scroll cards" role="region" tabindex="0" aria-label="{text(caption)}"><table{_class(look)}>'
        f"<caption>{text(caption)}</caption>\n{top}<tbody>\n{body}</tbody></table></div>\n"
    )


def _row(head: Sequence[str], row: Sequence[Html]) -> str:
    (first, look), *rest = [(cell, "") if isinstance(cell, str) else cell for cell in row]
    return f'<th scope="row"{_class(look)}>{first}</th>' + "".join(
        f'<td{_class(name)} data-label="{text(column)}">{cell}</td>'
        for column, (cell, name) in zip(head[1:], rest, strict=True)
    )


def _class(look: str) -> str:
    return f' class="{look}"' if look else ""
