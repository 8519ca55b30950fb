"""Histograms of shares over named bins, one below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import rows
from framegauge.plots.draw import ROLES, Specification, finish

__all__ = ["Histogram", "histograms"]

MARK_PIXELS = 30
BAR = 0.8  # of a bin's width


@dataclass(frozen=True)
class Histogram:
    """One row: shares by the name of their bin, the same names in every row."""

    row: rows.Row
    shares: Mapping[str, float]


def histograms(found: Sequence[Histogram], title: str) -> Specification:
    """The chart, in which the height of a row is a share of 1."""
    placed = rows.place([histogram.row for histogram in found], MARK_PIXELS)
    names = list(found[0].shares)
    middles = [index + 0.5 for index in range(len(names))]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, len(names)], nice=False),
        axis=alt.Axis(
            title=title, values=middles, grid=False, labelOverlap=False,
            labelExpr=f"{names!r}[indexof({middles!r}, datum.value)]",
        ),
    )  # fmt: skip
    y = rows.scale(placed)
    bases = [{"x": 0, "x2": len(names), "y": mark + MARK_PIXELS / 2} for mark in placed.marks]
    bars = [
        {
            "x": middle - BAR / 2, "x2": middle + BAR / 2, "y": mark + MARK_PIXELS / 2 - share * MARK_PIXELS,
            "y2": mark + MARK_PIXELS / 2, "colour": ROLES[histogram.row.role],
        }
        for histogram, mark in zip(found, placed.marks, strict=True)
        for middle, share in zip(middles, histogram.shares.values(), strict=True)
        if share > 0
    ]  # fmt: skip
    lines = alt.Chart(alt.InlineData(bases)).mark_rule(stroke=ROLES["line"])
    drawn = alt.Chart(alt.InlineData(bars)).mark_rect()
    fill = alt.Fill("colour:N", scale=None)
    return finish(
        [
            lines.encode(x=x, x2=alt.X2("x2:Q"), y=y),
            drawn.encode(x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("y2:Q"), fill=fill),
            *rows.texts([histogram.row for histogram in found], placed),
        ],
        placed.height,
    )
