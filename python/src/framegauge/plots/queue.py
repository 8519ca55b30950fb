"""A queue over a short time, with the arrivals of frames by input port below it, and those that were dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import rows
from framegauge.plots.draw import ROLES, Specification, finish

__all__ = ["Arrivals", "queue"]

QUEUE_PIXELS, SPARSE_PIXELS, MARK_PIXELS = 84, 28, 16

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Arrivals:
    """One input port: the times at which its frames arrived, and those of dropped frames."""

    row: rows.Row
    arrived: Sequence[float]
    dropped: Sequence[float]


def queue(
    top: rows.Row, held: Points, whole: bool, arrivals: Sequence[Arrivals], span: tuple[float, float], title: str
) -> Specification:
    """The chart. `held`: time and amount, from 0; a step line if it is `whole`, else dots at known times."""
    pixels = QUEUE_PIXELS if whole else SPARSE_PIXELS
    above = rows.place([top], pixels)
    below = rows.place([port_arrivals.row for port_arrivals in arrivals], MARK_PIXELS)
    placed = rows.Placed(
        [*above.words, *(above.height + place for place in below.words)],
        [*above.notes, *(above.height + place for place in below.notes)],
        [*above.marks, *(above.height + place for place in below.marks)],
        [],
        above.height + below.height,
    )
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=list(span), nice=False),
        axis=alt.Axis(title=title, tickCount=5, format="~r", grid=False),
    )
    y = rows.scale(placed)
    layers = rows.texts([top, *(port_arrivals.row for port_arrivals in arrivals)], placed)
    base, most = placed.marks[0] + pixels / 2, max((amount for _, amount in held), default=0) or 1
    layers.append(
        alt.Chart(alt.InlineData([{"x": span[0], "x2": span[1], "y": base}])).mark_rule(stroke=ROLES["line"]).encode(
            x=x, x2=alt.X2("x2:Q"), y=y
        )
    )  # fmt: skip
    if held:
        points = [{"x": time, "y": base - pixels * amount / most} for time, amount in held]
        drawn = alt.Chart(alt.InlineData(points))
        layers.append(
            drawn.mark_line(interpolate="step-after", stroke=ROLES["first"], strokeWidth=1.5).encode(x=x, y=y)
            if whole
            else drawn.mark_point(filled=True, size=16, fill=ROLES["first"], opacity=1).encode(x=x, y=y)
        )
    for port_arrivals, mark in zip(arrivals, placed.marks[1:], strict=True):
        layers += _arrivals(port_arrivals, mark, x, y)
    return finish(layers, placed.height)


def _arrivals(arrivals: Arrivals, mark: float, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Ticks, and crosses on those that were dropped."""
    layers = []
    ticks = [{"x": time, "y": mark - MARK_PIXELS / 2, "y2": mark + MARK_PIXELS / 2} for time in arrivals.arrived]
    if ticks:
        drawn = alt.Chart(alt.InlineData(ticks)).mark_rule(stroke=ROLES[arrivals.row.role], strokeWidth=1)
        layers.append(drawn.encode(x=x, y=y, y2=alt.Y2("y2:Q")))
    crosses = [{"x": time, "y": mark} for time in arrivals.dropped]
    if crosses:
        drawn = alt.Chart(alt.InlineData(crosses)).mark_point(
            shape="M-1,-1L1,1M1,-1L-1,1", size=70, stroke=ROLES["worse"], strokeWidth=1.75, opacity=1
        )
        layers.append(drawn.encode(x=x, y=y))
    return layers
