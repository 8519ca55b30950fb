"""Cumulative distributions on one logarithmic axis, one panel below the other, with a line for each arm."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import rows
from framegauge.plots.course import DASHES
from framegauge.plots.draw import ROLES, TEXT_PIXELS, WIDTH, finish
from framegauge.quantities import print_bytes

__all__ = ["Line", "Panel", "decades", "distributions"]

PANEL_PIXELS, SAMPLE_PIXELS = 56, 6
HEAD_PIXELS, GAP_PIXELS = TEXT_PIXELS + 7, 9
SAMPLE_WIDTH = 48
MOST_POINTS = 120  # of a line
MOST_TICKS = 6
SHARES = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Line:
    """The values of an arm in a panel, in bytes, in order."""

    arm: rows.Row
    values: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One distribution of each arm, with a name, and a note at its right."""

    name: str
    note: str
    lines: Sequence[Line]


def decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten between which all values above 0 lie; those of 0 are at the left end."""
    above = [value for value in values if value > 0] or [1.0]
    begin = math.floor(math.log10(min(above)))
    return begin, max(begin + 1, math.ceil(math.log10(max(above))))


def distributions(panels: Sequence[Panel], title: str) -> alt.LayerChart:
    """The chart; above its panels one row for each arm. A point of a line is the share of values up to that size."""
    arms = list({line.arm.label: line.arm for panel in panels for line in panel.lines}.values())
    placed = rows.place(arms, SAMPLE_PIXELS)
    step = HEAD_PIXELS + PANEL_PIXELS + GAP_PIXELS
    height = placed.height + step * len(panels)
    whole = dataclasses.replace(placed, height=height)
    begin, end = decades([value for panel in panels for line in panel.lines for value in line.values])
    step_powers = math.ceil((end - begin) / MOST_TICKS)
    end += -(end - begin) % step_powers
    values = [10.0**power for power in range(begin, end + 1, step_powers)]
    labels = [print_bytes(value) for value in values]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[10.0**begin, 10.0**end], nice=False, clamp=True),
        axis=alt.Axis(
            values=values, title=title, labelExpr=f"{labels!r}[indexof({values!r}, datum.value)]", labelOverlap=False,
            grid=False,
        ),
    )  # fmt: skip
    y = rows.scale(whole)
    layers = [*rows.texts(arms, whole), *_samples(arms, placed.marks, y)]
    for number, panel in enumerate(panels):
        top = placed.height + step * number
        layers += _panel(panel, top, values, x, y)
    return finish(layers, height)


def _samples(arms: Sequence[rows.Row], marks: Sequence[float], y: alt.Y) -> Iterator[alt.Chart]:
    for arm, mark in zip(arms, marks, strict=True):
        rule = alt.Chart(alt.InlineData([{"y": mark}])).mark_rule(
            stroke=ROLES[arm.role], strokeWidth=2.5, strokeDash=list(DASHES[arm.role])
        )
        yield rule.encode(x=alt.XValue(0), x2=alt.X2Value(SAMPLE_WIDTH), y=y)


def _panel(panel: Panel, top: float, ticks: Sequence[float], x: alt.X, y: alt.Y) -> Iterator[alt.Chart]:
    middle, floor = top + HEAD_PIXELS / 2, top + HEAD_PIXELS + PANEL_PIXELS
    name = alt.Chart(alt.InlineData([{"y": middle, "text": panel.name}]))
    bold = name.mark_text(align="left", baseline="middle", fontWeight="bold")
    yield bold.encode(x=alt.XValue(0), y=y, text=alt.Text("text:N"))
    note = alt.Chart(alt.InlineData([{"y": middle, "text": panel.note}]))
    soft = note.mark_text(align="right", baseline="middle", color=ROLES["soft"])
    yield soft.encode(x=alt.XValue(WIDTH), y=y, text=alt.Text("text:N"))
    grid = alt.Chart(alt.InlineData([{"y": floor - PANEL_PIXELS * share} for share in SHARES]))
    yield grid.mark_rule(stroke=ROLES["line"]).encode(x=alt.XValue(0), x2=alt.X2Value(WIDTH), y=y)
    across = alt.Chart(alt.InlineData([{"x": tick, "y": floor - PANEL_PIXELS, "y2": floor} for tick in ticks]))
    yield across.mark_rule(stroke=ROLES["line"]).encode(x=x, y=y, y2=alt.Y2("y2:Q"))
    for line in panel.lines:
        corners = _steps(line.values, ticks[0], ticks[-1])
        points = [{"x": value, "y": floor - PANEL_PIXELS * share} for value, share in corners]
        drawn = alt.Chart(alt.InlineData(points)).mark_line(
            stroke=ROLES[line.arm.role], strokeWidth=1.75, strokeDash=list(DASHES[line.arm.role]),
            interpolate="step-after",
        )  # fmt: skip
        yield drawn.encode(x=x, y=y)


def _steps(values: Sequence[float], least: float, most: float) -> Iterator[tuple[float, float]]:
    """The corners of a line from one end of the axis to the other: each size with the share of values up to it."""
    if not values:
        return
    yield least, 0.0
    ends = [place for place, (one, other) in enumerate(itertools.pairwise(values)) if one != other]
    ends.append(len(values) - 1)
    every = math.ceil(len(ends) / MOST_POINTS)
    for place in dict.fromkeys([*ends[::every], ends[-1]]):
        yield max(least, float(values[place])), (place + 1) / len(values)
    yield most, 1.0
