"""Charts of dose and response: the effect at each level of a treatment, and what arithmetic alone would give."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import axis, rows
from framegauge.plots.draw import ROLES, TEXT_PIXELS, WIDTH, Specification, finish

__all__ = ["Point", "dose"]

PLOT_PIXELS, SAMPLE_PIXELS = 150, 10
SAMPLE_WIDTH = 48
DASHES = {"first": (1, 0), "second": (6, 4)}


@dataclass(frozen=True)
class Point:
    """The ratio at a level to the baseline, with its interval if it has one."""

    level: float
    label: str
    ratio: float
    interval: Sequence[float] | None = None


def dose(
    measured: tuple[rows.Row, Sequence[Point]],
    arithmetic: tuple[rows.Row, Sequence[Point]] | None,
    enough: tuple[float, float] | None,
    title: str,
) -> Specification:
    """The ratios over the levels, on a logarithmic axis of ratios, each line under its row of text.

    `enough`: the band of ratios within the margin of the largest level.
    """
    lines = [measured, *([arithmetic] if arithmetic else [])]
    placed = rows.place([row for row, _ in lines], SAMPLE_PIXELS)
    top = placed.height + TEXT_PIXELS
    height = top + PLOT_PIXELS + 2
    y = rows.scale(dataclasses.replace(placed, height=height))
    points = [point for _, line_points in lines for point in line_points]
    shown = [point.ratio for point in points] + list(enough or ())
    low, high = axis.ratio_domain(shown, [entry.interval for entry in points if entry.interval is not None], 0.0)

    def place(ratio: float) -> float:
        return top + PLOT_PIXELS * math.log(high / min(high, max(low, ratio))) / math.log(high / low)

    layers = _grid(low, high, place, y) if enough is None else [_band(enough, place), *_grid(low, high, place, y)]
    layers += rows.texts([row for row, _ in lines], dataclasses.replace(placed, height=height))
    x = _levels(points, title)
    for (row, line_points), mark in zip(lines, placed.marks, strict=True):
        layers += _line(row, sorted(line_points, key=lambda entry: entry.level), place, (x, y))
        sample = alt.Chart(alt.InlineData([{"y": mark}]))
        layers.append(
            sample.mark_rule(strokeWidth=2, stroke=ROLES[row.role], strokeDash=list(DASHES[row.role])).encode(
                x=alt.XValue(0), x2=alt.X2Value(SAMPLE_WIDTH), y=y
            )
        )
    return finish(layers, height)


def _levels(points: Sequence[Point], title: str) -> alt.X:
    """A linear axis with a tick at every level, and a label where there is room for it."""
    labels = {point.level: point.label for point in points}
    low, high = min(labels), max(labels)
    left, right = 0.15 * (high - low), 0.05 * (high - low)  # the labels of the grid are on the left
    values = sorted(labels)
    tick_labels: list[str] = []
    last = -math.inf
    for value in values:
        width = (high - low) / WIDTH * 6 * (len(labels[value]) + 1)
        fits = value - last > width and (value == high or high - value > width)
        tick_labels.append(labels[value] if fits else "")
        last = value if fits else last
    return alt.X(
        "x:Q",
        scale=alt.Scale(domain=[low - left, high + right], nice=False),
        axis=alt.Axis(
            values=values, title=title, grid=False, labelOverlap=False,
            labelExpr=f"{tick_labels!r}[indexof({values!r}, datum.value)]",
        ),
    )  # fmt: skip


def _band(enough: tuple[float, float], place: axis.Place) -> alt.Chart:
    ends = [place(ratio) for ratio in enough]
    drawn: alt.Chart = alt.Chart(alt.InlineData([{}])).mark_rect(fill=ROLES["band"]).encode(
        x=alt.XValue(0), x2=alt.X2Value(WIDTH), y=alt.YValue(ends[1]), y2=alt.Y2Value(ends[0])
    )  # fmt: skip
    return drawn


def _grid(low: float, high: float, place: axis.Place, y: alt.Y) -> list[alt.Chart]:
    marks = [{"y": place(ratio), "text": axis.label(ratio)} for ratio in axis.ratio_ticks(low, high)]
    drawn = alt.Chart(alt.InlineData(marks))
    line = drawn.mark_rule(stroke=ROLES["line"]).encode(x=alt.XValue(0), x2=alt.X2Value(WIDTH), y=y)
    words = drawn.mark_text(align="left", baseline="bottom", dy=-1, color=ROLES["soft"])
    return [line, words.encode(x=alt.XValue(0), y=y, text=alt.Text("text:N"))]


def _line(row: rows.Row, points: Sequence[Point], place: axis.Place, axes: tuple[alt.X, alt.Y]) -> list[alt.Chart]:
    x, y = axes
    colour = ROLES[row.role]
    chart = alt.Chart(alt.InlineData([{"x": point.level, "y": place(point.ratio)} for point in points]))
    layers = [chart.mark_line(stroke=colour, strokeWidth=2, strokeDash=list(DASHES[row.role])).encode(x=x, y=y)]
    ends = [
        {"x": point.level, "y": place(point.interval[0]), "y2": place(point.interval[1])}
        for point in points
        if point.interval is not None
    ]
    if ends:
        drawn = alt.Chart(alt.InlineData(ends))
        layers.append(drawn.mark_rule(stroke=colour, strokeWidth=4).encode(x=x, y=y, y2=alt.Y2("y2:Q")))
    is_measured = row.role == "first"
    fill = colour if is_measured else ROLES["page"]
    layers.append(
        chart.mark_point(shape="circle", size=70, filled=True, fill=fill, stroke=colour, opacity=1).encode(x=x, y=y)
    )
    return layers
