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
    told = (dig(spools.record(saved.folder, run), "changes") for run in runs if not run.excluded)
    made = [each for each in told if each]
    moments: dict[float, list[Mapping[str, Any]]] = {}
    for each in made[0] if made else ():
        moments.setdefault(each["at_seconds"], []).append(each["set"])
    return [
        Change(
            together(asked),
            at,
            [max(each["made_seconds"] for each in one if each["at_seconds"] == at) for one in made],
        )
        for at, asked in sorted(moments.items())
    ]


def pictures(saved: Saved, looks: Mapping[str, Look], cells: words.Cells) -> Iterator[Picture]:
    """One chart per cell that has samples: goodput over time, with the moments marked."""
    for cell, inside in by_cell(saved.runs).items():
        moments = changes(saved, inside)
        if not moments:
            continue
        sampled = [(run, found) for run in inside if not run.excluded and (found := _sampled(saved, run))]
        if sampled:
            yield _picture(cell, f"Goodput over time, {arms.cell_title(inside, cells)}", sampled, moments, looks)


def _sampled(saved: Saved, run: Run) -> tuple[float, list[series.Connection]] | None:
    """The start of the first stream in seconds from the start of the measurement, and all connections."""
    found = series.connections(saved.folder / "runs" / str(run.number), run.files)
    record = spools.record(saved.folder, run)
    told = [dig(each, "result", "started_seconds") for each in dig(record, "workload", "runs") or ()]
    started = [each for each in told if each is not None]
    begun = record.get("begun_seconds")
    return (min(started) - begun, found) if found and started and begun is not None else None


def _picture(
    cell: int,
    title: str,
    sampled: Sequence[tuple[Run, tuple[float, list[series.Connection]]]],
    moments: Sequence[Change],
    looks: Mapping[str, Look],
) -> Picture:
    ends = [offset + max(float(each.time[-1]) for each in found) for _, (offset, found) in sampled]
    step = max(max(ends) / MOST_POINTS, LEAST_STEP_SECONDS)
    edges = np.arange(0, int(np.ceil(max(ends) / step)) + 1) * step
    first, last = moments[0].moment.seconds, moments[-1].moment.seconds
    by_arm: dict[str, list[_Course]] = {}
    for run, (offset, found) in sampled:
        by_arm.setdefault(run.arm, []).append(_course(offset, found, edges, first, last))
    middles = {name: _quartiles(np.array([each.values for each in by_arm[name]])) for name in by_arm}
    factor, unit = units.unit_scale("bits_per_second", max(float(np.nanmax(each)) for each in middles.values()))
    lines = [
        course.Line(
            rows.Row("", look.label, _around([each.around for each in by_arm[name]]), look.role),
            *(_known(middles[name][place] / factor) for place in (1, 0, 2)),
        )
        for name, look in looks.items()
        if name in by_arm
    ]
    drawn = draw.svg(
        course.course(
            lines, (edges[:-1] + step / 2).tolist(), [each.moment for each in moments], unit,
            "seconds since the measurement began",
        )
    )  # fmt: skip
    said = "; ".join(f"{each.row.label}: {each.row.note}" for each in lines)
    marked = "; ".join(f"{each.label} at {each.asked_seconds:g} s" for each in moments)
    return Picture(f"changes-{cell + 1}", "changes", title, f"{marked}. {said}.", drawn)


def _course(offset: float, found: Sequence[series.Connection], edges: np.ndarray, first: float, last: float) -> _Course:
    end = offset + max(float(each.time[-1]) for each in found)
    marks = np.array([offset, first, last, end])
    acked = series.acked(found, marks - offset)
    before, after = (8 * np.diff(acked) / np.maximum(np.diff(marks), 1e-9))[[0, 2]]
    goodput = 8 * np.diff(series.acked(found, edges - offset)) / np.diff(edges)
    # An incomplete step would look like a collapse.
    inside = (edges[:-1] >= offset) & (edges[1:] <= end)
    return _Course(np.where(inside, goodput, np.nan), (float(before), float(after)))


def _quartiles(values: np.ndarray) -> np.ndarray:
    """The quartiles of each step over the runs that fill it; NaN if none does."""
    found = np.full((len(QUARTILES), values.shape[1]), np.nan)
    there = np.isfinite(values).any(axis=0)
    found[:, there] = np.nanpercentile(values[:, there], QUARTILES, axis=0)
    return found


def _around(pairs: Sequence[tuple[float, float]]) -> str:
    before, after = (statistics.median(pair[place] for pair in pairs) for place in (0, 1))
    return f"{units.rates(before, None)} before, {units.rates(after, None)} after"


def _known(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
