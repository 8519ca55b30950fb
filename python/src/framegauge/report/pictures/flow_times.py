"""What became of flows: the distribution of their completion times, and their goodput by distance.

A simulation leaves the same two tables for every workload. Of a rack, the transfers of `stream` are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from framegauge.networks.paths import Distances
from framegauge.plots import distribution, draw, rows, spread
from framegauge.printable import printable
from framegauge.quantities import print_seconds
from framegauge.report.pictures import arms
from framegauge.report.pictures.arms import Look
from framegauge.report.pictures.charts import Picture
from framegauge.results import flows, spools
from framegauge.results.journal import Run, Saved
from framegauge.results.spools import dig
from framegauge.statistics.pairs import by_cell
from framegauge.summary import words
from framegauge.summary.units import unit_scale

__all__ = ["pictures"]

MOST_RUNS = 20  # of an arm and cell
MOST_PANELS, MOST_CELLS = 8, 4
LEAST_COMPLETIONS = 10  # of an arm: fewer are no distribution
LEAST_SPREAD = 1.02  # between the largest and the smallest: what is all the same needs no picture
DIGITS = 3
MOST_NOTED = 2  # arms
LOW, HIGH = 5.0, 95.0  # percentiles of flows

Arms = Mapping[str, Sequence[Run]]


def pictures(saved: Saved, looks: Mapping[str, Look], cells: words.Cells) -> Iterator[Picture]:
    """The distributions of all cells in one chart, and a chart of distances for each cell."""
    counted: dict[int, Arms] = {}
    for cell, cell_runs in by_cell(run for run in saved.runs if not run.excluded).items():
        runs_by_arm = {arm: [run for run in cell_runs if run.arm == arm][:MOST_RUNS] for arm in looks}
        counted[cell] = {arm: runs for arm, runs in runs_by_arm.items() if runs}
    yield from _completions(saved, counted, looks, cells)
    drawn = 0
    for cell, by_arm in counted.items():
        title = arms.cell_title(next(iter(by_arm.values())), cells)
        distances = _distances(saved.folder, by_arm, looks)
        if distances and (drawn := drawn + 1) <= MOST_CELLS:
            yield _by_hops(f"hops-{cell + 1}", title, distances)


def _completions(
    saved: Saved, by_cell: Mapping[int, Arms], looks: Mapping[str, Look], cells: words.Cells
) -> Iterator[Picture]:
    panels, notes = [], []
    for by_arm in by_cell.values():
        times = {arm: _times(saved.folder, runs) for arm, runs in by_arm.items()}
        whole = {arm: seconds for arm, seconds in times.items() if len(seconds) >= LEAST_COMPLETIONS}
        if whole and max(seconds[-1] / max(seconds[0], 1e-12) for seconds in whole.values()) >= LEAST_SPREAD:
            name = arms.cell_title(next(iter(by_arm.values())), cells)
            panels.append(_panel(name, whole, looks))
            notes += [f"{name}, {looks[arm].label}: {_quantiles(seconds)}" for arm, seconds in whole.items()]
        if len(panels) == MOST_PANELS:
            break
    if panels:
        drawn = draw.svg(distribution.distributions(panels, "time to completion (logarithmic)", _seconds, close=True))
        yield Picture(
            "completions", "flow-times", "Completion times, share of all up to each time", f"{'; '.join(notes)}.", drawn
        )


def _seconds(value: float) -> str:
    return print_seconds(value, DIGITS)


def _quantiles(seconds: np.ndarray) -> str:
    middle, late = (_seconds(float(np.quantile(seconds, share))) for share in (0.5, 0.99))
    return f"median {middle}, 99 % {late}, n = {len(seconds):,}"


def _panel(name: str, times: Mapping[str, np.ndarray], looks: Mapping[str, Look]) -> distribution.Panel:
    lines = [
        distribution.Line(rows.Row("", looks[arm].label, role=looks[arm].role), seconds.tolist())
        for arm, seconds in times.items()
    ]
    middle = " / ".join(_seconds(float(np.median(seconds))) for seconds in times.values())
    counts = sorted({len(seconds) for seconds in times.values()})
    count = f", n = {counts[0]:,}{'' if len(counts) == 1 else f' to {counts[-1]:,}'}"
    # The text has all of it: more would not fit above a panel.
    return distribution.Panel(name, f"median {middle}{count if len(lines) <= MOST_NOTED else ''}", lines)


def _times(folder: Path, runs: Sequence[Run]) -> np.ndarray:
    """The completion times of all rounds of all flows of these runs, in order."""
    parts = [part for run in runs for part in _times_of(folder, run)]
    return np.sort(np.concatenate(parts)) if parts else np.zeros(0)


def _times_of(folder: Path, run: Run) -> Iterator[np.ndarray]:
    place = folder / "runs" / str(run.number)
    table = spools.columns(place / "completions.parquet", ("start_seconds", "end_seconds", "complete"), files=run.files)
    if table is not None:
        yield (np.array(table["end_seconds"]) - np.array(table["start_seconds"]))[np.array(table["complete"], bool)]
        return
    if not run.conditions.get("size_bytes"):
        return  # transfers that end with the run complete nothing
    for _, _, transfers in _transfers(folder, run):
        yield np.array(transfers["end_seconds"]) - np.array(transfers["start_seconds"])


def _transfers(folder: Path, run: Run) -> Iterator[tuple[str, str, Mapping[str, Sequence[Any]]]]:
    """The ends and the transfers of each `stream.run`, of a run on hosts."""
    for stream, transfers in flows.transfers_of(folder, run):
        yield str(stream.get("client")), str(stream.get("server")), transfers


def _distances(folder: Path, by_arm: Arms, looks: Mapping[str, Look]) -> list[tuple[int, Look, list[np.ndarray]]]:
    """The goodput of every flow by hops and arm, a list for each run; empty unless there are two distances."""
    goodputs: dict[tuple[int, str], list[np.ndarray]] = {}
    for arm, runs in by_arm.items():
        for run in runs:
            for hops, goodput in _by_distance(folder, run).items():
                goodputs.setdefault((hops, arm), []).append(np.array(goodput))
    if len({hops for hops, _ in goodputs}) < 2:
        return []
    return [
        (hops, looks[arm], goodputs[hops, arm])
        for hops in sorted({hops for hops, _ in goodputs})
        for arm in looks
        if (hops, arm) in goodputs
    ]


def _by_distance(folder: Path, run: Run) -> Mapping[int, Sequence[float]]:
    place = folder / "runs" / str(run.number)
    table = spools.columns(place / "flows.parquet", ("hops", "goodput_bits_per_second"), files=run.files)
    goodputs: dict[int, list[float]] = {}
    if table is not None:
        for hops, goodput in zip(table["hops"], table["goodput_bits_per_second"], strict=True):
            if hops is not None and goodput is not None:
                goodputs.setdefault(hops, []).append(goodput)
        return goodputs
    ports = dig(spools.record(folder, run), "rack", "network", "ports") or ()
    distances = Distances((port["from"], port["to"]) for port in ports if {"from", "to"} <= set(port))
    for client, server, transfers in _transfers(folder, run):
        flows = np.array(transfers["flow"], int)
        spent = np.array(transfers["end_seconds"]) - np.array(transfers["start_seconds"])
        amounts, times = np.bincount(flows, transfers["bytes"]), np.bincount(flows, spent)
        if (hops := distances.between(client, server)) is not None:
            goodputs.setdefault(hops, []).extend((8 * amounts[times > 0] / times[times > 0]).tolist())
    return goodputs


def _by_hops(name: str, title: str, distances: Sequence[tuple[int, Look, Sequence[np.ndarray]]]) -> Picture:
    most = max(float(np.percentile(np.concatenate(runs), HIGH)) for *_, runs in distances)
    factor, unit = unit_scale("bits_per_second", most)
    drawn = []
    for hops, look, runs in distances:
        goodputs, means = np.concatenate(runs), [float(run.mean()) / factor for run in runs]
        middle = float(np.mean(means))
        row = rows.Row(f"{hops} hops", look.label, f"{middle:.4g} {unit}, {len(goodputs):,} flows", look.role)
        ends = [float(np.percentile(goodputs, share)) / factor for share in (LOW, HIGH)]
        drawn.append(spread.Spread(row, look.shape, means, middle, None, ends))
    notes = "; ".join(f"{entry.row.heading}, {entry.row.label}: {entry.row.note}" for entry in drawn)
    chart = spread.spread(drawn, f"goodput of a flow ({unit}); thin line: 5 % to 95 % of flows")
    return Picture(name, "flow-times", printable(f"Goodput by distance, {title}"), f"{notes}.", draw.svg(chart))
