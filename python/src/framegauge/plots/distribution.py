"""Cumulative distributions on one logarithmic axis, one panel below the other, with a line for each arm."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import rows
from framegauge.plots.course import DASHES
from framegauge.plots.draw import ROLES, TEXT_PIXELS, WIDTH, Specification, finish
from framegauge.quantities import print_bytes

__all__ = ["Line", "Panel", "between", "decades", "distributions"]

PANEL_PIXELS, SAMPLE_PIXELS = 56, 6
HEAD_PIXELS, GAP_PIXELS = TEXT_PIXELS + 7, 9
SAMPLE_WIDTH = 48
MOST_POINTS = 120  # of a line
MOST_TICKS = 6
APART = 3.0  # ratio of labelled ticks where only powers of ten are labelled between the ends
SHARES = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Line:
    """The values of an arm in a panel, in order."""

    arm: rows.Row
    values: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One distribution of each arm, with a name, and a note at its right, or below it if they do not fit."""

    name: str
    note: str
    lines: Sequence[Line]


def decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten between which all values above 0 lie; those of 0 are at the left end."""
    above = [value for value in values if value > 0] or [1.0]
    begin = math.floor(math.log10(min(above)))
    return begin, max(begin + 1, math.ceil(math.log10(max(above))))


def distributions(
    panels: Sequence[Panel], title: str, printed: Callable[[float], str] = print_bytes, close: bool = False
) -> Specification:
    """The chart; above its panels one row for each arm. A point of a line is the share of values up to that size, which
    the axis shows as it is `printed`. The axis is from one power of ten to another, or `close` around the values."""
    arms = list({line.arm.label: line.arm for panel in panels for line in panel.lines}.values())
    placed = rows.place(arms, SAMPLE_PIXELS)
    heads = [HEAD_PIXELS * (1 + _is_long(panel)) for panel in panels]
    height = placed.height + sum(heads) + (PANEL_PIXELS + GAP_PIXELS) * len(panels)
    whole = dataclasses.replace(placed, height=height)
    all_values = [value for panel in panels for line in panel.lines for value in line.values]
    values = between(all_values) if close else _powers(all_values)
    labels = [printed(value) for value in values]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[values[0], values[-1]], nice=False, clamp=True),
        axis=alt.Axis(
            values=values, title=title, labelExpr=f"{labels!r}[indexof({values!r}, datum.value)]", labelOverlap=False,
            grid=False,
        ),
    )  # fmt: skip
    y = rows.scale(whole)
    layers = [*rows.texts(arms, whole), *_samples(arms, placed.marks, y)]
    top = placed.height
    for panel, head in zip(panels, heads, strict=True):
        layers += _panel(panel, top, top + head + PANEL_PIXELS, values, x, y)
        top += head + PANEL_PIXELS + GAP_PIXELS
    return finish(layers, height)


def _powers(values: Sequence[float]) -> list[float]:
    begin, end = decades(values)
    step = math.ceil((end - begin) / MOST_TICKS)
    end += -(end - begin) % step
    return [10.0**power for power in range(begin, end + 1, step)]


def between(found: Sequence[float]) -> list[float]:
    """The ticks of an axis close around all values above 0: 1, 2 and 5 times powers of ten, the ends among them."""
    above = [value for value in found if value > 0] or [1.0]
    first, last = math.floor(math.log10(min(above))), math.ceil(math.log10(max(above)))
    steps = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in (1, 2, 5)]
    begin = max((place for place, value in enumerate(steps) if value <= min(above)), default=0)
    end = min(place for place, value in enumerate(steps) if value >= max(above) and place > begin)
    ticks = steps[begin : end + 1]
    if len(ticks) <= MOST_TICKS:
        return ticks
    powers = [value for value in steps[begin + 1 : end] if f"{value:e}".startswith("1.")]
    apart = [value for value in powers if value / ticks[0] > APART and ticks[-1] / value > APART]
    return [ticks[0], *apart[:: math.ceil(len(apart) / (MOST_TICKS - 2))], ticks[-1]]


def _samples(arms: Sequence[rows.Row], marks: Sequence[float], y: alt.Y) -> Iterator[alt.Chart]:
    for arm, mark in zip(arms, marks, strict=True):
        rule = alt.Chart(alt.InlineData([{"y": mark}])).mark_rule(
            stroke=ROLES[arm.role], strokeWidth=2.5, strokeDash=list(DASHES[arm.role])
        )
        yield rule.encode(x=alt.XValue(0), x2=alt.X2Value(SAMPLE_WIDTH), y=y)


def _is_long(panel: Panel) -> bool:
    return len(panel.name) + 2 + len(panel.note) > rows.LONGEST_LINE


def _panel(panel: Panel, top: float, floor: float, ticks: Sequence[float], x: alt.X, y: alt.Y) -> Iterator[alt.Chart]:
    middle = top + HEAD_PIXELS / 2
    name = alt.Chart(alt.InlineData([{"y": middle, "text": panel.name}]))
    bold = name.mark_text(align="left", baseline="middle", fontWeight="bold")
    yield bold.encode(x=alt.XValue(0), y=y, text=alt.Text("text:N"))
    note = alt.Chart(alt.InlineData([{"y": middle + HEAD_PIXELS * _is_long(panel), "text": panel.note}]))
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
    ends = [place for place, (before, after) in enumerate(itertools.pairwise(values)) if before != after]
    ends.append(len(values) - 1)
    stride = math.ceil(len(ends) / MOST_POINTS)
    for place in dict.fromkeys([*ends[::stride], ends[-1]]):
        yield max(least, float(values[place])), (place + 1) / len(values)
    yield most, 1.0
