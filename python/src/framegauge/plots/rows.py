"""The layout of rows: a heading for each group, and below it one row per item, with its text above its marks.

Text is above the plot and not next to it, so that a chart is no wider than a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import altair as alt

from framegauge.plots.draw import ROLES, TEXT_PIXELS, WIDTH

__all__ = ["Placed", "Row", "place", "scale", "texts"]

HEADING_PIXELS = 17
GAP_PIXELS = 8
LONGEST_LINE = 54  # characters that fit into the width


@dataclass(frozen=True)
class Row:
    """One item: the heading of its group, its label, and a note with the result (at the right), in a role's colour."""

    heading: str
    label: str
    note: str = ""
    role: str = "text"


@dataclass(frozen=True)
class Placed:
    """Positions in pixels from the top: each row's label, note and marks; lines of headings; the total height."""

    words: Sequence[float]
    notes: Sequence[float]
    marks: Sequence[float]
    headings: Sequence[tuple[str, float]]
    height: float


def place(rows: Sequence[Row], mark_pixels: float) -> Placed:
    """The positions of rows whose marks are `mark_pixels` high. Rows with the same heading must follow one another.

    A note that does not fit next to its label is placed below it.
    """
    words, notes, marks, headings, y = [], [], [], [], 2.0
    for before, row in pairwise((None, *rows)):
        assert row is not None
        if row.heading and (before is None or before.heading != row.heading):
            y += GAP_PIXELS if before is not None else 0
            for line in _lines(row.heading):
                headings.append((line, y + HEADING_PIXELS / 2))
                y += HEADING_PIXELS
        words.append(y + TEXT_PIXELS / 2 + 2)
        if len(row.label) + 2 + len(row.note) > LONGEST_LINE:
            y += TEXT_PIXELS + 2
        notes.append(y + TEXT_PIXELS / 2 + 2)
        y += TEXT_PIXELS + 6
        marks.append(y + mark_pixels / 2)
        y += mark_pixels + 4
    return Placed(words, notes, marks, headings, y + 2)


def _lines(heading: str) -> list[str]:
    """A long heading in lines, cut between its parts."""
    lines = [""]
    for part in heading.split(", "):
        joined = f"{lines[-1]}, {part}" if lines[-1] else part
        if len(joined) > LONGEST_LINE and lines[-1]:
            lines[-1] += ","
            lines.append(part)
        else:
            lines[-1] = joined
    return lines


def scale(placed: Placed, field: str = "y") -> alt.Y:
    """A scale for pixels from the top in a field, without an axis."""
    return alt.Y(
        f"{field}:Q", scale=alt.Scale(domain=[0, placed.height], range=[0, placed.height], nice=False), axis=None
    )


def texts(rows: Sequence[Row], placed: Placed) -> list[alt.Chart]:
    """The text of all rows and headings as layers."""
    headings = [{"y": y, "text": line} for line, y in placed.headings]
    labels = [{"y": y, "text": row.label} for row, y in zip(rows, placed.words, strict=True)]
    notes = [
        {"y": y, "text": row.note, "colour": ROLES[row.role]}
        for row, y in zip(rows, placed.notes, strict=True)
        if row.note
    ]
    y, left, right = scale(placed), alt.XValue(0), alt.XValue(WIDTH)
    layers = []
    if headings:
        bold = alt.Chart(alt.InlineData(headings)).mark_text(align="left", baseline="middle", fontWeight="bold")
        layers.append(bold.encode(x=left, y=y, text=alt.Text("text:N")))
    if labels:
        plain = alt.Chart(alt.InlineData(labels)).mark_text(align="left", baseline="middle")
        layers.append(plain.encode(x=left, y=y, text=alt.Text("text:N")))
    if notes:
        bold = alt.Chart(alt.InlineData(notes)).mark_text(align="right", baseline="middle", fontWeight="bold")
        layers.append(bold.encode(x=right, y=y, text=alt.Text("text:N"), color=alt.Color("colour:N", scale=None)))
    return layers
