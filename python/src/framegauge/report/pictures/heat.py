"""The effect on a metric, and the metric itself, at every combination of two factors or two keys of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.metrics import METRICS
from framegauge.plots import draw, heat
from framegauge.printable import printable
from framegauge.report.pictures.charts import Picture
from framegauge.summary import words
from framegauge.summary.units import quantity, unit_scale

__all__ = ["pictures"]

MOST_MAPS = 8
MOST_ROWS = 12
LEAST_RANGE = 0.01  # of a change, so that differences that are next to nothing get no shade

Verdict = Mapping[str, Any]
Grid = tuple[list[str], list[str], list[list[Verdict | None]]]  # labels of columns and rows, and what is there


def pictures(summary: Mapping[str, Any]) -> Iterator[Picture]:
    """A map for each metric, workload and level of the treatment, up to MOST_MAPS; none with fewer than two factors
    that were varied besides the treatment."""
    number = 0
    verdicts = [verdict for verdict in summary["verdicts"] if not words.is_control(verdict)]
    for metric in dict.fromkeys(verdict["metric"] for verdict in verdicts):
        for where, axes, group in _grids([verdict for verdict in verdicts if verdict["metric"] == metric]):
            baselines = set()
            arms = dict.fromkeys(words.levels(verdict["treatment"]) for verdict in group)
            for arm in arms:
                grid = _grid([verdict for verdict in group if words.levels(verdict["treatment"]) == arm], axes)
                number += 2
                if number > 2 * MOST_MAPS:
                    return
                yield _effects(f"map-{number - 1}", metric, where, axes, grid)
                if where not in baselines:
                    baselines.add(where)
                    yield _values(f"map-{number}", metric, where, axes, grid)


def _grids(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, tuple[str, str], list[Verdict]]]:
    """The verdicts that differ in two conditions only: what else they have in common, and the two, columns first."""
    for workload in dict.fromkeys(verdict["workload"] for verdict in verdicts):
        members = [verdict for verdict in verdicts if verdict["workload"] == workload]
        levels = {name: _levels(members, name) for verdict in members for name in verdict["conditions"]}
        names = sorted((name for name, values in levels.items() if len(values) > 1), key=lambda name: len(levels[name]))
        if len(names) < 2:
            continue
        first, second = names[-2:]  # those with the most levels
        axes = (second, first) if len(levels[second]) <= heat.MOST_COLUMNS else (first, second)
        if len(levels[axes[0]]) > heat.MOST_COLUMNS or len(levels[axes[1]]) > MOST_ROWS:
            continue
        rest = [name for name in names if name not in axes]
        groups: dict[str, list[Verdict]] = {}
        for verdict in members:
            conditions = [words.condition(name, verdict["conditions"].get(name)) for name in rest]
            groups.setdefault(", ".join([workload, *conditions]), []).append(verdict)
        for where, group in groups.items():
            if all(len(_levels(group, name)) > 1 for name in axes):
                yield where, axes, group


def _levels(verdicts: Sequence[Verdict], name: str) -> list[Any]:
    """The levels of a condition, numbers in their order, others as they come."""
    levels: list[Any] = []
    for verdict in verdicts:
        value = verdict["conditions"].get(name)
        if value not in levels:
            levels.append(value)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in levels)
    return sorted(levels) if numbers else levels


def _grid(verdicts: Sequence[Verdict], axes: tuple[str, str]) -> Grid:
    columns, levels = (_levels(verdicts, name) for name in axes)
    body = [
        [
            next(
                (item for item in verdicts if [item["conditions"].get(name) for name in axes] == [column, level]), None
            )
            for column in columns
        ]
        for level in levels
    ]
    return [_label(axes[0], item) for item in columns], [_label(axes[1], item) for item in levels], body


def _label(name: str, value: Any) -> str:
    text = words.condition(name, value)
    return printable(text.removeprefix(words.word(name)).removeprefix(words.factor(name)).strip() or text)


def _effects(name: str, metric: str, where: str, axes: tuple[str, str], grid: Grid) -> Picture:
    columns, levels, body = grid
    entries = [entry for row in body for entry in row if entry is not None and entry["ratio"] is not None]
    most = max([LEAST_RANGE, *(abs(math.log(entry["ratio"])) for entry in entries if entry["ratio"] > 0)])
    sign = 1 if METRICS[metric].higher_is_better else -1

    def cell(entry: Verdict | None) -> heat.Cell:
        if entry is None or not entry["ratio"] or entry["ratio"] <= 0:
            return heat.Cell(None, ["-"])
        verdict = words.verdict(entry)
        short = "same" if verdict.startswith("no ") else verdict.split(" ")[0]
        return heat.Cell(sign * math.log(entry["ratio"]) / most, [words.change(entry["ratio"]), short])

    cells = [[cell(entry) for entry in row] for row in body]
    worst, best = (words.change(math.exp(-sign * most)), words.change(math.exp(sign * most)))
    arm, base = (printable(words.levels(entries[0][side])) if entries else "" for side in ("treatment", "baseline"))
    title = f"Change of {words.metric(metric)} by {arm} against {base}, {where}"
    legend = (f"{worst} (worse)", "no change", f"{best} (better)")
    return _picture(name, title, axes, (columns, levels, cells), legend)


def _values(name: str, metric: str, where: str, axes: tuple[str, str], grid: Grid) -> Picture:
    columns, levels, body = grid
    values = [entry["baseline"]["estimate"] for row in body for entry in row if entry is not None]
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    factor, unit = unit_scale(METRICS[metric].unit, high)

    def cell(entry: Verdict | None) -> heat.Cell:
        value = None if entry is None else entry["baseline"]["estimate"]
        if value is None:
            return heat.Cell(None, ["-"])
        return heat.Cell((value - low) / (high - low) if high > low else 0.0, [f"{value / factor:.3g}"])

    cells = [[cell(entry) for entry in row] for row in body]
    base = next((words.levels(entry["baseline"]) for row in body for entry in row if entry is not None), "")
    title = f"{words.metric(metric)} with {printable(base)}{f' ({unit})' if unit else ''}, {where}"
    legend = (quantity(low, METRICS[metric].unit), "", quantity(high, METRICS[metric].unit))
    return _picture(name, title[0].upper() + title[1:], axes, (columns, levels, cells), legend, from_low=True)


def _picture(
    name: str,
    title: str,
    axes: tuple[str, str],
    drawn: tuple[Sequence[str], Sequence[str], Sequence[Sequence[heat.Cell]]],
    legend: Sequence[str],
    from_low: bool = False,
) -> Picture:
    columns, levels, cells = drawn
    names = (printable(words.factor(axes[0])), printable(words.factor(axes[1])))
    chart = heat.heat(columns, levels, cells, names, legend, from_low)
    text = "; ".join(
        f"{names[1]} {level}: "
        + ", ".join(f"{column} {' '.join(cell.lines)}" for column, cell in zip(columns, row, strict=True))
        for level, row in zip(levels, cells, strict=True)
    )
    return Picture(name, "maps", printable(title), f"Columns: {names[0]}. {text}.", draw.svg(chart))
