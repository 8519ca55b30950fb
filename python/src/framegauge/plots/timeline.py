"""What a port held over time, and below it when frames were marked and dropped: one panel for each arm, on one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import rows
from framegauge.plots.draw import ROLES, Specification, finish

__all__ = ["Panel", "timeline"]

QUEUE_PIXELS, EVENT_PIXELS, GAP_PIXELS = 58, 11, 3
LEAST_SHARE = 0.25  # of the height of a bar: a single frame has to be seen

Steps = Sequence[tuple[float, float, float]]  # from, to, amount


@dataclass(frozen=True)
class Panel:
    """An arm: what was held in each step of time, and how many frames were marked and dropped."""

    row: rows.Row
    held: Steps
    marked: Steps
    dropped: Steps


def timeline(panels: Sequence[Panel], span: tuple[float, float], unit: str, title: str) -> Specification:
    """The chart, in which panels have the same scales. Amounts are in `unit`; without marks there is no row of them."""
    with_marks = any(panel.marked for panel in panels)
    events = 2 if with_marks else 1
    placed = rows.place([panel.row for panel in panels], QUEUE_PIXELS + events * (EVENT_PIXELS + GAP_PIXELS))
    most = max((amount for panel in panels for *_, amount in panel.held), default=0.0) or 1.0
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=list(span), nice=False, clamp=True),
        axis=alt.Axis(title=[title, f"top of the areas: {most:.3g} {unit}"], tickCount=5, format="~r", grid=False),
    )
    y = rows.scale(placed)
    layers = rows.texts([panel.row for panel in panels], placed)
    for panel, mark in zip(panels, placed.marks, strict=True):
        top = mark - (QUEUE_PIXELS + events * (EVENT_PIXELS + GAP_PIXELS)) / 2
        layers += _held(panel, top, most, (x, y, span))
        floor = top + QUEUE_PIXELS
        shown = (("control", panel.marked), ("worse", panel.dropped)) if with_marks else (("worse", panel.dropped),)
        for role, steps in shown:
            floor += GAP_PIXELS + EVENT_PIXELS
            layers += _events(steps, floor, role, (x, y, span))
    return finish(layers, placed.height)


Axes = tuple[alt.X, alt.Y, tuple[float, float]]


def _held(panel: Panel, top: float, most: float, axes: Axes) -> Iterator[alt.Chart]:
    x, y, span = axes
    floor = top + QUEUE_PIXELS
    ends = alt.Chart(alt.InlineData([{"x": span[0], "x2": span[1], "y": height} for height in (top, floor)]))
    yield ends.mark_rule(stroke=ROLES["line"]).encode(x=x, x2=alt.X2("x2:Q"), y=y)
    areas = [
        {"x": begin, "x2": end, "y": floor - QUEUE_PIXELS * amount / most, "y2": floor}
        for begin, end, amount in panel.held
        if amount > 0
    ]
    if areas:
        drawn = alt.Chart(alt.InlineData(areas)).mark_rect(
            fill=ROLES[panel.row.role], stroke=ROLES[panel.row.role], strokeWidth=0.4
        )
        yield drawn.encode(x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("y2:Q"))


def _events(steps: Steps, floor: float, role: str, axes: Axes) -> Iterator[alt.Chart]:
    x, y, span = axes
    base = alt.Chart(alt.InlineData([{"x": span[0], "x2": span[1], "y": floor}]))
    yield base.mark_rule(stroke=ROLES["line"]).encode(x=x, x2=alt.X2("x2:Q"), y=y)
    most = max((count for *_, count in steps), default=0.0) or 1.0
    bars = [
        {"x": begin, "x2": end, "y": floor - EVENT_PIXELS * max(LEAST_SHARE, count / most), "y2": floor}
        for begin, end, count in steps
        if count > 0
    ]
    if bars:
        drawn = alt.Chart(alt.InlineData(bars)).mark_rect(fill=ROLES[role], strokeWidth=0)
        yield drawn.encode(x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("y2:Q"))
