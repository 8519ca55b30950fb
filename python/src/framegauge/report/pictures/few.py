"""What few flows get beside many: the share at each level with its interval, and what each group carried over time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from framegauge.plots import course, draw, effect, rows
from framegauge.printable import printable
from framegauge.record import FEW_WINDOW_SECONDS
from framegauge.report.pictures import arms
from framegauge.report.pictures.arms import Look
from framegauge.report.pictures.charts import Picture
from framegauge.results import spools
from framegauge.results.journal import Run, Saved
from framegauge.statistics.pairs import by_cell
from framegauge.summary import few, units, words

__all__ = ["MOST_SHOWN", "pictures"]

MOST_SHOWN = 12  # cells and arms over time on a page; the tables of the runs have all
LEAST_WINDOWS = 2
MOST_SECONDS = 5.0
GROUPS = {"few": "first", "mid": "second", "many": "baseline"}
ROLES = {"less": "worse", "more": "undecided", "fair": "better"}  # all other verdicts have the role "soft"
_COLUMNS = ("group", "begin_seconds", "goodput_bits_per_second")

Rates = Mapping[str, Sequence[float]]  # by group: the mean goodput per flow in each window


def pictures(saved: Saved, summary: Mapping[str, Any], looks: Mapping[str, Look], cells: words.Cells) -> list[Picture]:
    """The shares of all levels in one chart, then a chart over time for each cell and arm."""
    entries = summary.get("few", ())
    return [*_shares(entries, cells), *_over_time(saved, entries, looks, cells)]


def _shares(entries: Sequence[Mapping[str, Any]], cells: words.Cells) -> Iterator[Picture]:
    if not entries:
        return
    effects = [
        effect.Effect(
            rows.Row(
                printable(cells.of(entry)), printable(words.levels(entry["levels"])),
                f"{few.share(entry['share'])}, {entry['verdict']}", ROLES.get(entry["verdict"], "soft"),
            ),
            entry["share"], entry["judged"]["interval"],
        )
        for entry in entries
    ]  # fmt: skip
    margin = entries[0]["margin"]
    text = "; ".join(f"{entry.row.heading}, {entry.row.label}: {entry.row.note}" for entry in effects)
    drawn = draw.svg(effect.effect(effects, margin, "goodput of each of the few, against each of the many"))
    band = f"Band: the same within a factor of {1 + margin:g}. "
    yield Picture("few-shares", "few", "Share of the few by level", f"{band}{text}.", drawn)


def _over_time(
    saved: Saved, entries: Sequence[Mapping[str, Any]], looks: Mapping[str, Look], cells: words.Cells
) -> Iterator[Picture]:
    number, counted = 0, by_cell(run for run in saved.runs if not run.excluded)
    for cell in dict.fromkeys(entry["cell"] for entry in entries):
        cell_runs = counted.get(cell, [])
        for arm in dict.fromkeys(run.arm for run in arms.in_order(cell_runs)):
            run_rates = [rates for run in cell_runs if run.arm == arm and (rates := _read(saved, run))]
            windows = min((len(next(iter(rates.values()))) for rates in run_rates), default=0)
            if arm in looks and looks[arm].role != "control" and windows >= LEAST_WINDOWS and number < MOST_SHOWN:
                number += 1
                title = ", ".join(filter(None, (looks[arm].label, arms.cell_title(cell_runs, cells))))
                yield _course(number, title, run_rates, windows)


def _read(saved: Saved, run: Run) -> Rates:
    """What each group of a run carried per flow, window by window; empty if the run has no such table."""
    place = saved.folder / "runs" / str(run.number) / "few.parquet"
    table = spools.columns(place, _COLUMNS, files=run.files) if place.exists() else None
    if table is None:
        return {}
    groups: dict[str, dict[int, list[float]]] = {}
    for group, begin, rate in zip(*(table[name] for name in _COLUMNS), strict=True):
        if group in GROUPS and _is_amount(begin) and _is_amount(rate) and begin < MOST_SECONDS:
            groups.setdefault(group, {}).setdefault(round(begin / FEW_WINDOW_SECONDS), []).append(rate)
    means = {name: [statistics.fmean(rates[place]) for place in sorted(rates)] for name, rates in groups.items()}
    return {name: means[name] for name in GROUPS if name in means}


def _is_amount(value: object) -> bool:
    return isinstance(value, float) and 0 <= value < math.inf


def _course(number: int, title: str, run_rates: Sequence[Rates], windows: int) -> Picture:
    names = [name for name in GROUPS if all(len(rates.get(name, ())) >= windows for rates in run_rates)]
    values = {name: np.array([rates[name][:windows] for rates in run_rates]) for name in names}
    factor, unit = units.unit_scale("bits_per_second", max(float(item.max()) for item in values.values()))
    times = [FEW_WINDOW_SECONDS * (place + 0.5) for place in range(windows)]
    lines = []
    for name, item in values.items():
        middle, low, high = (take(item, axis=0) / factor for take in (np.mean, np.min, np.max))
        note = f"{middle[0]:.3g} {unit} at first, {middle[-1]:.3g} {unit} at last"
        row = rows.Row("", f"the {name}" if name != "mid" else "between", note, GROUPS[name])
        lines.append(course.Line(row, list(map(float, middle)), list(map(float, low)), list(map(float, high))))
    text = "; ".join(f"{item.row.label}: {', '.join(f'{value:.3g}' for value in item.middle)} {unit}" for item in lines)
    drawn = draw.svg(course.course(lines, times, (), unit, "seconds from the first start of a flow"))
    head = printable(f"Goodput per flow over time, {title}")
    return Picture(
        f"few-time-{number}", "few", head, f"Means over runs in windows of {FEW_WINDOW_SECONDS:g} s. {text}.", drawn
    )
