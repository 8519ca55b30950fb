"""The distribution of a metric with one mark per run, which shows what an interval summarises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from framegauge.plots import rows
from framegauge.plots.draw import ROLES, Specification, finish

__all__ = ["Arm", "strip"]

MARK_PIXELS = 22


@dataclass(frozen=True)
class Arm:
    """One arm: the values of its runs by block, those that count and those excluded; `middle`: the median."""

    row: rows.Row
    shape: str
    runs: Sequence[tuple[int, float]]
    excluded: Sequence[tuple[int, float]]
    middle: float | None


def strip(arms: Sequence[Arm], blocks: int, title: str) -> Specification:
    """The chart, with a linear axis. The first block is at the top of its row."""
    placed = rows.place([arm.row for arm in arms], MARK_PIXELS)
    x = alt.X("x:Q", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(title=title, tickCount=5, format="~r"))
    y = rows.scale(placed)
    layers = rows.texts([arm.row for arm in arms], placed)
    placed_arms = list(zip(arms, placed.marks, strict=True))
    middles = [
        {"x": arm.middle, "y": mark - MARK_PIXELS / 2, "y2": mark + MARK_PIXELS / 2, "colour": ROLES[arm.row.role]}
        for arm, mark in placed_arms
        if arm.middle is not None
    ]
    runs = [point for arm, mark in placed_arms for point in _points(arm, arm.runs, mark, blocks)]
    excluded = [point for arm, mark in placed_arms for point in _points(arm, arm.excluded, mark, blocks)]
    if middles:
        strokes = alt.Chart(alt.InlineData(middles)).mark_rule(strokeWidth=1.5, opacity=0.7)
        layers.append(strokes.encode(x=x, y=y, y2=alt.Y2("y2:Q"), color=alt.Color("colour:N", scale=None)))
    if runs:
        marks = alt.Chart(alt.InlineData(runs)).mark_point(filled=True, size=34, opacity=0.85)
        shape, fill = alt.Shape("shape:N", scale=None), alt.Fill("colour:N", scale=None)
        layers.append(marks.encode(x=x, y=y, shape=shape, fill=fill))
    if excluded:
        crosses = alt.Chart(alt.InlineData(excluded)).mark_point(
            shape="cross", filled=True, fill=ROLES["page"], strokeWidth=1.25, size=60, opacity=1
        )
        layers.append(crosses.encode(x=x, y=y, stroke=alt.Stroke("colour:N", scale=None)))
    return finish(layers, placed.height)


def _points(arm: Arm, runs: Sequence[tuple[int, float]], mark: float, blocks: int) -> list[Mapping[str, float | str]]:
    """The mark of each run at the height of its block, so that drift shows as a slope."""
    step, top = (MARK_PIXELS - 6) / max(1, blocks - 1), mark - (MARK_PIXELS - 6) / 2
    return [
        {"x": value, "y": top + step * block, "shape": arm.shape, "colour": ROLES[arm.row.role]}
        for block, value in runs
    ]
