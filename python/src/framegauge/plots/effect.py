"""Charts of effects: ratios with their intervals, and the band of no practical difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import axis, rows
from framegauge.plots.draw import ROLES, Specification, finish

__all__ = ["Effect", "effect"]

MARK_PIXELS = 12
LINE_PIXELS = 3


@dataclass(frozen=True)
class Effect:
    """One comparison. `ratio` is None if there is none."""

    row: rows.Row
    ratio: float | None
    interval: Sequence[float] | None = None
    is_control: bool = False


def effect(found: Sequence[Effect], margin: float | None, title: str) -> Specification:
    """One row per comparison. Line: the interval; circle: treatment, hollow diamond: A/A control."""
    placed = rows.place([comparison.row for comparison in found], MARK_PIXELS)
    ratios = [comparison.ratio for comparison in found if comparison.ratio is not None] or [1.0]
    intervals = [comparison.interval for comparison in found if comparison.interval is not None]
    low, high = axis.ratio_domain(ratios, intervals, margin or 0.0)
    x, y = axis.ratios(low, high, title), rows.scale(placed)
    layers: list[alt.Chart] = []
    if margin is not None:
        band = {"x": 1 / (1 + margin), "x2": 1 + margin}
        layers.append(
            alt.Chart(alt.InlineData([band])).mark_rect(fill=ROLES["band"]).encode(
                x=x, x2=alt.X2("x2:Q"), y=alt.YValue(0), y2=alt.Y2Value(placed.height)
            )
        )  # fmt: skip
    # In pieces, so that no line crosses text.
    same = [{"x": 1, "y": mark - MARK_PIXELS / 2, "y2": mark + MARK_PIXELS / 2} for mark in placed.marks]
    layers.append(
        alt.Chart(alt.InlineData(same))
        .mark_rule(stroke=ROLES["soft"], strokeWidth=1)
        .encode(x=x, y=y, y2=alt.Y2("y2:Q"))
    )
    layers += rows.texts([comparison.row for comparison in found], placed)
    if lines := _lines(found, placed, low, high):
        layers.append(
            alt.Chart(alt.InlineData(lines)).mark_rule(strokeWidth=LINE_PIXELS).encode(
                x=x, x2=alt.X2("x2:Q"), y=y, color=alt.Color("colour:N", scale=None)
            )
        )  # fmt: skip
    for is_control, shape in ((False, "circle"), (True, "diamond")):
        points = [
            {"x": comparison.ratio, "y": mark, "colour": ROLES[comparison.row.role]}
            for comparison, mark in zip(found, placed.marks, strict=True)
            if comparison.ratio is not None and comparison.is_control is is_control
        ]
        if points:
            layers.append(
                alt.Chart(alt.InlineData(points)).mark_point(
                    shape=shape, size=90, filled=True, fill=ROLES["page"], strokeWidth=2, opacity=1
                ).encode(x=x, y=y, stroke=alt.Stroke("colour:N", scale=None))
                if is_control
                else alt.Chart(alt.InlineData(points)).mark_point(shape=shape, size=90, filled=True, opacity=1).encode(
                    x=x, y=y, fill=alt.Fill("colour:N", scale=None)
                )
            )  # fmt: skip
    return finish(layers, placed.height)


def _lines(comparisons: Sequence[Effect], placed: rows.Placed, low: float, high: float) -> list[dict[str, float | str]]:
    """The intervals, cut off at the ends of the axis."""
    return [
        {"x": max(low, interval[0]), "x2": min(high, interval[1]), "y": mark, "colour": ROLES[comparison.row.role]}
        for comparison, mark in zip(comparisons, placed.marks, strict=True)
        if comparison.ratio is not None and (interval := comparison.interval) is not None
    ]
