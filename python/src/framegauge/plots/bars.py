"""Bar charts: goodput against its ceiling, and CPU time by user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import rows
from framegauge.plots.draw import ROLES, Specification, finish

__all__ = ["PARTS", "Bar", "Stack", "ceilings", "stacks"]

MARK_PIXELS = 9
# The users of CPU time with the roles of their colours, in the order of the stack and of the legend.
PARTS: Mapping[str, str] = {"hosts": "first", "fabric": "control", "framegauge": "third", "unattributed": "line"}


@dataclass(frozen=True)
class Bar:
    """One bar: a value, its ceiling, and the role of its colour."""

    row: rows.Row
    value: float
    ceiling: float
    role: str


@dataclass(frozen=True)
class Stack:
    """One stacked bar: amounts by part, in the order of PARTS."""

    row: rows.Row
    parts: Mapping[str, float]


def ceilings(bars: Sequence[Bar], title: str) -> Specification:
    """A chart with a bar from 0 to each value, and a stroke at its ceiling."""
    placed = rows.place([bar.row for bar in bars], MARK_PIXELS)
    most = max(max(bar.value, bar.ceiling) for bar in bars)
    x, y = _from_nothing(most, title), rows.scale(placed)
    values = [
        {"x": 0, "x2": bar.value, "y": mark - MARK_PIXELS / 2, "y2": mark + MARK_PIXELS / 2, "colour": ROLES[bar.role]}
        for bar, mark in zip(bars, placed.marks, strict=True)
    ]
    strokes = [
        {"x": bar.ceiling, "y": mark - MARK_PIXELS / 2 - 2, "y2": mark + MARK_PIXELS / 2 + 2}
        for bar, mark in zip(bars, placed.marks, strict=True)
    ]
    drawn = alt.Chart(alt.InlineData(values)).mark_rect().encode(
        x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("y2:Q"), fill=alt.Fill("colour:N", scale=None)
    )  # fmt: skip
    ends = (
        alt.Chart(alt.InlineData(strokes))
        .mark_rule(stroke=ROLES["text"], strokeWidth=2)
        .encode(x=x, y=y, y2=alt.Y2("y2:Q"))
    )
    return finish([drawn, ends, *rows.texts([bar.row for bar in bars], placed)], placed.height)


def stacks(found: Sequence[Stack], title: list[str]) -> Specification:
    """A chart with one bar per row, its parts end to end; the last, unattributed part has an outline."""
    placed = rows.place([stack.row for stack in found], MARK_PIXELS)
    most = max(sum(max(0.0, part) for part in stack.parts.values()) for stack in found)
    x, y = _from_nothing(most, title), rows.scale(placed)
    values = []
    for stack, mark in zip(found, placed.marks, strict=True):
        end = 0.0
        for name, role in PARTS.items():
            begin, end = end, end + max(0.0, stack.parts.get(name, 0.0))
            values.append({
                "x": begin, "x2": end, "y": mark - MARK_PIXELS / 2, "y2": mark + MARK_PIXELS / 2, "colour": ROLES[role],
            })  # fmt: skip
    drawn = alt.Chart(alt.InlineData(values)).mark_rect(stroke=ROLES["soft"], strokeWidth=0.75).encode(
        x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("y2:Q"), fill=alt.Fill("colour:N", scale=None)
    )  # fmt: skip
    return finish([drawn, *rows.texts([stack.row for stack in found], placed)], placed.height)


def _from_nothing(most: float, title: str | list[str]) -> alt.X:
    return alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, 1.01 * (most or 1)], nice=False),
        axis=alt.Axis(title=title, tickCount=5, format="~r", grid=False),
    )
