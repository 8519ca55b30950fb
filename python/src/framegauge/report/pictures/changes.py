"""The changes made while runs were under way: their moments, and goodput around them by arm."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from framegauge.networks.settings import together
from framegauge.plots import course, draw, rows
from framegauge.printable import printable
from framegauge.report.pictures import arms, series
from framegauge.report.pictures.arms import Look
from framegauge.report.pictures.charts import Picture
from framegauge.results import spools
from framegauge.results.journal import Run, Saved
from framegauge.results.spools import dig
from framegauge.statistics.pairs import by_cell
from framegauge.summary import units, words

__all__ = ["Change", "changes", "pictures"]

MOST_POINTS = 120
LEAST_STEP_SECONDS = 0.02  # two samples
QUARTILES = (25, 50, 75)


@dataclass(frozen=True)
class Change:
    """The changes of one moment: what and where, the time requested, and when the last was made in each run."""

    label: str
    asked_seconds: float
    made_seconds: Sequence[float]

    @property
    def moment(self) -> course.Moment:
        """The mark of the changes in a chart."""
        return course.Moment(statistics.median(self.made_seconds), printable(self.label))


@dataclass(frozen=True)
class _Course:
    """A run's goodput on a grid, and its mean before the first change and after the last."""

    values: np.ndarray
    around: tuple[float, float]


def changes(saved: Saved, runs: Sequence[Run]) -> list[Change]:
    """The changes in runs that count, in order of their moments."""
    records = (dig(spools.record(saved.folder, run), "changes") for run in runs if not run.excluded)
    by_run = [entry for entry in records if entry]
    moments: dict[float, list[Mapping[str, Any]]] = {}
    for entry in by_run[0] if by_run else ():
        moments.setdefault(entry["at_seconds"], []).append(entry["set"])
    return [
        Change(
            together(settings),
            time,
            [max(entry["made_seconds"] for entry in run_log if entry["at_seconds"] == time) for run_log in by_run],
        )
        for time, settings in sorted(moments.items())
    ]


def pictures(saved: Saved, looks: Mapping[str, Look], cells: words.Cells) -> Iterator[Picture]:
    """One chart per cell that has samples: goodput over time, with the moments marked."""
    for cell, cell_runs in by_cell(saved.runs).items():
        moments = changes(saved, cell_runs)
        if not moments:
            continue
        sampled = [(run, samples) for run in cell_runs if not run.excluded and (samples := _sampled(saved, run))]
        if sampled:
            yield _picture(cell, f"Goodput over time, {arms.cell_title(cell_runs, cells)}", sampled, moments, looks)


def _sampled(saved: Saved, run: Run) -> tuple[float, list[series.Connection]] | None:
    """The start of the first stream in seconds from the start of the measurement, and all connections."""
    flows = series.connections(saved.folder / "runs" / str(run.number), run.files)
    record = spools.record(saved.folder, run)
    starts = [dig(item, "result", "started_seconds") for item in dig(record, "workload", "runs") or ()]
    known_starts = [item for item in starts if item is not None]
    begun = record.get("begun_seconds")
    return (min(known_starts) - begun, flows) if flows and known_starts and begun is not None else None


def _picture(
    cell: int,
    title: str,
    sampled: Sequence[tuple[Run, tuple[float, list[series.Connection]]]],
    moments: Sequence[Change],
    looks: Mapping[str, Look],
) -> Picture:
    ends = [offset + max(float(item.time[-1]) for item in flows) for _, (offset, flows) in sampled]
    step = max(max(ends) / MOST_POINTS, LEAST_STEP_SECONDS)
    edges = np.arange(0, int(np.ceil(max(ends) / step)) + 1) * step
    first, last = moments[0].moment.seconds, moments[-1].moment.seconds
    by_arm: dict[str, list[_Course]] = {}
    for run, (offset, flows) in sampled:
        by_arm.setdefault(run.arm, []).append(_course(offset, flows, edges, first, last))
    middles = {name: _quartiles(np.array([item.values for item in by_arm[name]])) for name in by_arm}
    factor, unit = units.unit_scale("bits_per_second", max(float(np.nanmax(item)) for item in middles.values()))
    lines = [
        course.Line(
            rows.Row("", look.label, _around([item.around for item in by_arm[name]]), look.role),
            *(_known(middles[name][place] / factor) for place in (1, 0, 2)),
        )
        for name, look in looks.items()
        if name in by_arm
    ]
    drawn = draw.svg(
        course.course(
            lines, (edges[:-1] + step / 2).tolist(), [item.moment for item in moments], unit,
            "seconds since the measurement began",
        )
    )  # fmt: skip
    summary = "; ".join(f"{item.row.label}: {item.row.note}" for item in lines)
    marked = "; ".join(f"{item.label} at {item.asked_seconds:g} s" for item in moments)
    return Picture(f"changes-{cell + 1}", "changes", title, f"{marked}. {summary}.", drawn)


def _course(offset: float, flows: Sequence[series.Connection], edges: np.ndarray, first: float, last: float) -> _Course:
    end = offset + max(float(flow.time[-1]) for flow in flows)
    marks = np.array([offset, first, last, end])
    acked = series.acked(flows, marks - offset)
    before, after = (8 * np.diff(acked) / np.maximum(np.diff(marks), 1e-9))[[0, 2]]
    goodput = 8 * np.diff(series.acked(flows, edges - offset)) / np.diff(edges)
    # An incomplete step would look like a collapse.
    is_inside = (edges[:-1] >= offset) & (edges[1:] <= end)
    return _Course(np.where(is_inside, goodput, np.nan), (float(before), float(after)))


def _quartiles(values: np.ndarray) -> np.ndarray:
    """The quartiles of each step over the runs that fill it; NaN if none does."""
    quartiles = np.full((len(QUARTILES), values.shape[1]), np.nan)
    is_filled = np.isfinite(values).any(axis=0)
    quartiles[:, is_filled] = np.nanpercentile(values[:, is_filled], QUARTILES, axis=0)
    return quartiles


def _around(pairs: Sequence[tuple[float, float]]) -> str:
    before, after = (statistics.median(pair[place] for pair in pairs) for place in (0, 1))
    return f"{units.rates(before, None)} before, {units.rates(after, None)} after"


def _known(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
