"""Means with their intervals and all their runs, one per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import rows
from framegauge.plots.draw import ROLES, Specification, finish

__all__ = ["Spread", "spread"]

MARK_PIXELS = 18
FURTHEST = 1.5  # the most by which an interval may widen the axis beyond the runs, as a factor


@dataclass(frozen=True)
class Spread:
    """One row: a value per run, their mean, its interval, and the range of its members, if any."""

    row: rows.Row
    shape: str
    runs: Sequence[float]
    mean: float
    interval: Sequence[float] | None
    members: Sequence[float] | None = None


def spread(found: Sequence[Spread], title: str) -> Specification:
    """The chart, from 0. Above: runs; below: the interval, cut at the axis' end, and thin: members; stroke: mean."""
    placed = rows.place([entry.row for entry in found], MARK_PIXELS)
    most = max(max(*entry.runs, entry.mean, *(entry.members or ())) for entry in found)
    widest = max(entry.interval[1] if entry.interval else 0.0 for entry in found)
    # The interval of a few very different runs would otherwise dominate the axis.
    top = 1.02 * max(most, min(widest, FURTHEST * most)) or 1.0
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(title=title, tickCount=5, format="~r"),
    )
    y, colour = rows.scale(placed), alt.Color("colour:N", scale=None)
    layers = rows.texts([entry.row for entry in found], placed)
    marks = list(zip(found, placed.marks, strict=True))
    for name, width in (("members", 1.25), ("interval", 4.5)):
        lines = [
            {"x": ends[0], "x2": min(top, ends[1]), "y": mark + MARK_PIXELS / 4, "colour": ROLES[entry.row.role]}
            for entry, mark in marks
            if (ends := getattr(entry, name)) is not None
        ]
        if lines:
            drawn = alt.Chart(alt.InlineData(lines)).mark_rule(strokeWidth=width)
            layers.append(drawn.encode(x=x, x2=alt.X2("x2:Q"), y=y, color=colour))
    strokes = [
        {"x": entry.mean, "y": mark - MARK_PIXELS / 2, "y2": mark + MARK_PIXELS / 2, "colour": ROLES[entry.row.role]}
        for entry, mark in marks
    ]
    drawn = alt.Chart(alt.InlineData(strokes)).mark_rule(strokeWidth=1.5)
    layers.append(drawn.encode(x=x, y=y, y2=alt.Y2("y2:Q"), color=colour))
    points = [
        {"x": value, "y": mark - MARK_PIXELS / 4, "shape": entry.shape, "colour": ROLES[entry.row.role]}
        for entry, mark in marks
        for value in entry.runs
    ]
    drawn = alt.Chart(alt.InlineData(points)).mark_point(filled=True, size=34, opacity=0.85)
    shape, fill = alt.Shape("shape:N", scale=None), alt.Fill("colour:N", scale=None)
    layers.append(drawn.encode(x=x, y=y, shape=shape, fill=fill))
    return finish(layers, placed.height)
