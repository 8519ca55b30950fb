"""Goodput, srtt and cwnd of one representative run of each arm over time, for the page's zoomable charts.

The representative of an arm in a cell is the run whose goodput (or, without one, first metric) is nearest to the
arm's median. All arms of a cell share one grid of at most MOST_POINTS steps, and so one time axis.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from framegauge.report.pictures import arms
from framegauge.results import spools
from framegauge.results.journal import Run
from framegauge.statistics.pairs import by_cell

__all__ = [
    "MOST_POINTS", "SERIES", "Cell", "Connection", "Course", "acked", "cells", "connections", "representative",
]  # fmt: skip

MOST_POINTS = 300
# Units by name. Goodput counts acknowledged bytes; cwnd and srtt are means over all flows within a step.
SERIES = {"goodput": "bits_per_second", "srtt": "seconds", "cwnd": "bytes"}
_COLUMNS = {"time_seconds", "round", "flow", "srtt_seconds", "cwnd_segments", "mss_bytes", "bytes_acked"}

Values = Sequence[float | None]


@dataclass(frozen=True)
class Course:
    """One run over time: values by series, one per step; None where nothing was sampled."""

    run: Run
    values: Mapping[str, Values]


@dataclass(frozen=True)
class Cell:
    """The arms of one cell on one time axis (seconds from the start of the run)."""

    cell: int
    seconds: Sequence[float]
    courses: Sequence[Course]


def representative(runs: Sequence[Run]) -> Run | None:
    """The run nearest to the median of one arm in one cell; None if no run counts."""
    whole = [run for run in runs if not run.excluded and run.metrics]
    if not whole:
        return None
    metric = "goodput" if all("goodput" in run.metrics for run in whole) else next(iter(whole[0].metrics))
    candidates = [run for run in whole if metric in run.metrics]
    middle = statistics.median(run.metrics[metric] for run in candidates)
    return min(candidates, key=lambda run: (abs(run.metrics[metric] - middle), run.number))


def cells(folder: Path, runs: Sequence[Run]) -> Iterator[Cell]:
    """Every cell that has samples."""
    for cell, cell_runs in by_cell(runs).items():
        names = dict.fromkeys(run.arm for run in arms.in_order(cell_runs))
        chosen = [representative([run for run in cell_runs if run.arm == name]) for name in names]
        places = [(run, folder / "runs" / str(run.number)) for run in chosen if run is not None]
        sampled = [(run, flows) for run, place in places if (flows := connections(place, run.files))]
        if sampled:
            yield _on_one_grid(cell, sampled)


@dataclass(frozen=True)
class Connection:
    """The samples of one connection in order of time; it began to send at `start`."""

    start: float
    time: np.ndarray
    srtt: np.ndarray
    cwnd_bytes: np.ndarray
    acked: np.ndarray


def connections(folder: Path, files: Mapping[str, str]) -> list[Connection]:
    """The samples of all sending sockets of a run. Tables that are empty or lack a column are skipped."""
    flows: list[Connection] = []
    for path in sorted(folder.glob("samples*.arrow")):
        table = spools.table(path, files=files)
        if table is None or not table.num_rows or not set(table.column_names) >= _COLUMNS:
            continue
        columns = {name: table[name].to_numpy(zero_copy_only=False).astype(float) for name in _COLUMNS}
        starts = _starts(path, files)
        keys = list(zip(columns["round"].astype(int), columns["flow"].astype(int), strict=True))
        for key in dict.fromkeys(keys):
            mask = np.array([other == key for other in keys]) if len(set(keys)) > 1 else np.ones(len(keys), bool)
            picked = {name: values[mask] for name, values in columns.items()}
            order = np.argsort(picked["time_seconds"], kind="stable")
            time = picked["time_seconds"][order]
            flows.append(
                Connection(
                    min(starts.get(key, time[0]), time[0]),
                    time,
                    picked["srtt_seconds"][order],
                    (picked["cwnd_segments"] * picked["mss_bytes"])[order],
                    picked["bytes_acked"][order],
                )
            )
    return flows


def _starts(samples: Path, files: Mapping[str, str]) -> dict[tuple[int, int], float]:
    """The start of each transfer of a samples table, by round and flow."""
    path = samples.with_name(samples.name.replace("samples", "transfers", 1))
    table = spools.table(path, files=files) if path.exists() else None
    if table is None or not set(table.column_names) >= {"round", "flow", "start_seconds"}:
        return {}
    rows: list[dict[str, Any]] = table.select(["round", "flow", "start_seconds"]).to_pylist()
    return {(row["round"], row["flow"]): row["start_seconds"] for row in rows}


def _on_one_grid(cell: int, sampled: Sequence[tuple[Run, Sequence[Connection]]]) -> Cell:
    times = [connection.time for _, flows in sampled for connection in flows]
    end = max(float(time[-1]) for time in times)
    # No step is shorter than the time between samples, because nothing is known in between.
    gaps = [float(np.median(gap)) for _, flows in sampled if len(gap := _gaps(flows))]
    step = max(end / MOST_POINTS, min(gaps, default=end), 1e-6)
    edges = np.arange(0, max(1, int(np.ceil(end / step - 1e-9))) + 1) * step
    courses = [Course(run, dict(_course(flows, edges))) for run, flows in sampled]
    return Cell(cell, [float(f"{value:.6g}") for value in (edges[:-1] + step / 2)], courses)


def _gaps(flows: Sequence[Connection]) -> np.ndarray:
    """The times between moments at which anything was sampled."""
    gaps = np.diff(np.unique(np.concatenate([connection.time for connection in flows])))
    return gaps[gaps > 1e-4]  # flows that are sampled one after the other count as one moment


def acked(found: Sequence[Connection], seconds: np.ndarray) -> np.ndarray:
    """The bytes of all connections together that were acknowledged by each of these times."""
    total = np.zeros(len(seconds))
    for connection in found:
        time, amounts = np.concatenate(([connection.start], connection.time)), np.concatenate(([0.0], connection.acked))
        total += np.interp(seconds, time, amounts, left=0.0)
    return total


def _course(flows: Sequence[Connection], edges: np.ndarray) -> Iterator[tuple[str, Values]]:
    end = max(float(connection.time[-1]) for connection in flows)
    goodput = 8 * np.diff(acked(flows, edges)) / np.diff(edges)
    # An incomplete last step would look like a collapse.
    whole = (edges[1:] <= end * (1 + 1e-9)) | ((edges[:-1] < end) & (edges[1] >= end))
    yield "goodput", _rounded(np.where(whole, goodput, np.nan))
    time = np.concatenate([flow.time for flow in flows])
    step = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, len(edges) - 2)
    count = np.bincount(step, minlength=len(edges) - 1)
    for name, field in (("srtt", "srtt"), ("cwnd", "cwnd_bytes")):
        values = np.concatenate([getattr(flow, field) for flow in flows])
        total = np.bincount(step, weights=values, minlength=len(edges) - 1)
        yield name, _rounded(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _rounded(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
