"""Values over time: one line per arm with its band, on one axis, and moments as labelled vertical lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import rows
from framegauge.plots.draw import ROLES, TEXT_PIXELS, WIDTH, Specification, finish

__all__ = ["Line", "Moment", "course"]

PLOT_PIXELS, SAMPLE_PIXELS = 150, 6
SAMPLE_WIDTH = 48
LABEL_PIXELS = TEXT_PIXELS + 4
TICKS = 4
# Dashes, so that colour is never the only difference.
DASHES = {
    "baseline": (1, 0),
    "control": (2, 2),
    "first": (7, 2),
    "second": (7, 2, 2, 2),
    "third": (4, 4),
    "fourth": (9, 4),
}


@dataclass(frozen=True)
class Line:
    """An arm: `middle`, and the `low` and `high` ends of its band, at each time; None where there is no value."""

    row: rows.Row
    middle: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]


@dataclass(frozen=True)
class Moment:
    """An event at a time, with its label."""

    seconds: float
    label: str


def course(
    found: Sequence[Line], times: Sequence[float], moments: Sequence[Moment], unit: str, title: str
) -> Specification:
    """The chart, from 0 up, over `times` in seconds; above it one row per arm, and one line of text per moment."""
    placed = rows.place([line.row for line in found], SAMPLE_PIXELS)
    top = placed.height + LABEL_PIXELS * len(moments) + TEXT_PIXELS
    height = top + PLOT_PIXELS + 2
    whole = dataclasses.replace(placed, height=height)
    y, colour = rows.scale(whole), alt.Color("colour:N", scale=None)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, times[-1]], nice=False),
        axis=alt.Axis(title=title, tickCount=5, format="~r", grid=False),
    )
    most = max((value for line in found for value in line.high if value is not None), default=0) or 1.0
    layers = rows.texts([line.row for line in found], whole)
    layers += _grid(top, most, unit, y)
    low = rows.scale(whole, "low")
    for line in found:
        layers += _line(line, times, most, top, (x, y, low))
    for line, mark in zip(found, placed.marks, strict=True):
        drawn = alt.Chart(alt.InlineData([{"y": mark, "colour": ROLES[line.row.role]}]))
        dash = list(DASHES[line.row.role])
        rule = drawn.mark_rule(strokeWidth=2.5, strokeDash=dash)
        layers.append(rule.encode(x=alt.XValue(0), x2=alt.X2Value(SAMPLE_WIDTH), y=y, color=colour))
    layers += _moments(moments, placed.height, times[-1], x, y, height)
    return finish(layers, height)


def _step(most: float) -> float:
    """A round step, of which only a few fit below the maximum."""
    rough = most / TICKS
    scale = 10.0 ** len(str(int(rough))) / 10 if rough >= 1 else 0.1
    return next((scale * multiple for multiple in (1, 2, 2.5, 5, 10) if scale * multiple >= rough), 10 * scale)


def _grid(top: float, most: float, unit: str, y: alt.Y) -> list[alt.Chart]:
    step = _step(most)
    values = [step * number for number in range(int(most / step) + 1)]
    marks = [{"y": top + PLOT_PIXELS * (1 - value / most), "text": f"{value:g} {unit}"} for value in values]
    drawn = alt.Chart(alt.InlineData(marks))
    line = drawn.mark_rule(stroke=ROLES["line"]).encode(x=alt.XValue(0), x2=alt.X2Value(WIDTH), y=y)
    words = drawn.mark_text(align="left", baseline="bottom", dy=-1, color=ROLES["soft"])
    return [line, words.encode(x=alt.XValue(0), y=y, text=alt.Text("text:N"))]


def _line(
    line: Line, times: Sequence[float], most: float, top: float, axes: tuple[alt.X, alt.Y, alt.Y]
) -> Iterator[alt.Chart]:
    x, y, lower = axes

    def place(value: float) -> float:
        return top + PLOT_PIXELS * (1 - value / most)

    role = line.row.role
    for part in _parts(line, times):
        points = [
            {"x": time, "y": place(middle), "low": place(low), "high": place(high)} for time, middle, low, high in part
        ]
        drawn = alt.Chart(alt.InlineData(points))
        yield drawn.mark_area(fill=ROLES[role], fillOpacity=0.18).encode(x=x, y=lower, y2=alt.Y2("high:Q"))
        yield drawn.mark_line(stroke=ROLES[role], strokeWidth=1.75, strokeDash=list(DASHES[role])).encode(x=x, y=y)


def _parts(line: Line, times: Sequence[float]) -> Iterator[list[tuple[float, float, float, float]]]:
    """The stretches in which all values are known."""
    part: list[tuple[float, float, float, float]] = []
    for time, middle, low, high in zip(times, line.middle, line.low, line.high, strict=True):
        if middle is not None and low is not None and high is not None:
            part.append((time, middle, low, high))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _moments(
    moments: Sequence[Moment], begin: float, last: float, x: alt.X, y: alt.Y, height: float
) -> Iterator[alt.Chart]:
    """The moments, each with its label next to the upper end of its line, on the side with more room."""
    for number, moment in enumerate(moments):
        label_y = begin + LABEL_PIXELS * number + LABEL_PIXELS / 2
        drawn = alt.Chart(
            alt.InlineData([{"x": moment.seconds, "y": label_y - LABEL_PIXELS / 2, "y2": height, "text": moment.label}])
        )
        yield drawn.mark_rule(stroke=ROLES["text"], strokeWidth=1, strokeDash=[3, 2]).encode(
            x=x, y=y, y2=alt.Y2("y2:Q")
        )
        right = moment.seconds > last / 2
        words = drawn.mark_text(align="right" if right else "left", baseline="middle", dx=-4 if right else 4)
        yield words.encode(x=x, y=alt.YValue(label_y), text=alt.Text("text:N"))
