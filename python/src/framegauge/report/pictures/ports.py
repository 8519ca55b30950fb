"""The busiest port of each comparison over time, its worst burst, and its runs of drops by input port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framegauge.plots import draw, histogram, rows, timeline
from framegauge.printable import printable
from framegauge.report.pictures import arms, series
from framegauge.report.pictures.arms import Look
from framegauge.report.pictures.charts import Picture
from framegauge.results import spools
from framegauge.results.journal import Run, Saved
from framegauge.results.spools import dig
from framegauge.statistics.pairs import by_cell
from framegauge.summary import drop_runs, words
from framegauge.summary.units import unit_scale

__all__ = ["MOST_CELLS", "pictures"]

MOST_CELLS = 4
STEPS = 160  # of the time axis: about two pixels each
BURST_STEPS = 120
SHORTEST_BURST, LONGEST_BURST = 100e-6, 5e-3
PAUSE_SECONDS = 500e-6  # without a drop, after which a burst is over
MOST_INPUTS = 2  # input ports with a row each; more are shown together

Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class _Seen:
    """A port in a run: its samples, what it marked and dropped, and when the run ended."""

    look: Look
    run: Run
    time: np.ndarray
    peak: np.ndarray
    queue: np.ndarray
    marked: np.ndarray  # times
    dropped: np.ndarray
    told: Sequence[tuple[float, float]]  # time and queue of each drop and mark
    end: float


def pictures(saved: Saved, looks: Mapping[str, Look], cells: words.Cells) -> Iterator[Picture]:
    """Of the first cells that dropped or marked anything: the port that did most of it, in one run of each arm."""
    drawn = 0
    for cell, cell_runs in by_cell(saved.runs).items():
        chosen = {arm: series.representative([run for run in cell_runs if run.arm == arm]) for arm in looks}
        runs = {arm: run for arm, run in chosen.items() if run is not None}
        port = _busiest(saved.folder, list(runs.values()))
        if port is None or drawn == MOST_CELLS:
            continue
        traces = [item for arm, run in runs.items() if (item := _seen(saved.folder, run, port, looks[arm])) is not None]
        title = arms.cell_title(cell_runs, cells)
        if traces:
            drawn += 1
            yield _whole(f"port-{cell + 1}", title, port, traces)
            yield from _burst(f"burst-{cell + 1}", title, port, traces)
        yield from _lengths(f"lengths-{cell + 1}", title, port, saved, cell_runs, looks)


def _busiest(folder: Path, runs: Sequence[Run]) -> str | None:
    """The port with the most drops, or without any the most marks, in all these runs; None if there are none."""
    dropped: Counter[str] = Counter()
    marked: Counter[str] = Counter()
    for run in runs:
        for port in dig(spools.record(folder, run), "measure", "fabric", "ports") or ():
            dropped[port["port"]] += port.get("dropped_frames") or 0
            marked[port["port"]] += port.get("marked_frames") or 0
    for counts in (dropped, marked):
        if counts and max(counts.values()) > 0:
            return counts.most_common(1)[0][0]
    return None


def _seen(folder: Path, run: Run, port: str, look: Look) -> _Seen | None:
    place = folder / "runs" / str(run.number)
    queues = _of(place / "queues.parquet", run, port, ("time_seconds", "peak_queue_bytes", "queue_bytes"))
    drops = _of(place / "drops.parquet", run, port, ("time_seconds", "queue_bytes", "action"))
    if queues is None or not len(queues["time_seconds"]) or drops is None:
        return None
    times = drops["time_seconds"].astype(float)
    elapsed = dig(spools.record(folder, run), "measure", "elapsed_seconds")
    return _Seen(
        look, run, queues["time_seconds"], queues["peak_queue_bytes"], queues["queue_bytes"],
        times[drops["action"] == "marked"], times[drops["action"] == "dropped"],
        list(zip(times.tolist(), drops["queue_bytes"].tolist(), strict=True)),
        max(float(elapsed or 0.0), float(queues["time_seconds"][-1])),
    )  # fmt: skip


def _of(path: Path, run: Run, port: str, names: Sequence[str]) -> Columns | None:
    """These columns of a port's rows, in the order of time."""
    table = spools.table(path, {*names, "port"}, files=run.files)
    if table is None or not {*names, "port"} <= set(table.column_names):
        return None
    port_rows = table.filter(pc.equal(table["port"], pa.scalar(port, pa.string()))).sort_by("time_seconds")
    return {name: port_rows[name].to_numpy(zero_copy_only=False) for name in names}


def _whole(name: str, title: str, port: str, traces: Sequence[_Seen]) -> Picture:
    end = max(trace.end for trace in traces)
    factor, unit = unit_scale("seconds", end)
    amounts, bytes_unit = unit_scale("bytes", max(float(trace.peak.max()) for trace in traces))
    edges = np.linspace(0.0, end, STEPS + 1)
    panels = []
    for trace in traces:
        queue_bytes = np.zeros(STEPS)
        # A sample is of the time since the one before: a step shows the most that was held in it, or reached into it.
        np.maximum.at(queue_bytes, np.clip(np.searchsorted(edges, trace.time) - 1, 0, STEPS - 1), trace.peak)
        panels.append(
            timeline.Panel(
                rows.Row("", trace.look.label, _note(trace, float(trace.peak.max())), trace.look.role),
                _steps(edges / factor, queue_bytes / amounts),
                *(_steps(edges / factor, np.histogram(times, edges)[0]) for times in (trace.marked, trace.dropped)),
            )
        )
    notes = "; ".join(f"{panel.row.label}: {panel.row.note}" for panel in panels)
    chart = timeline.timeline(panels, (0.0, end / factor), bytes_unit, f"time ({unit}), in steps of 1/{STEPS}")
    return Picture(name, "ports", printable(f"Queue of {port} over time, {title}"), f"{notes}.", draw.svg(chart))


def _note(trace: _Seen, most: float) -> str:
    marked = f"{len(trace.marked):,} marked, " if len(trace.marked) else ""
    factor, unit = unit_scale("bytes", most)
    return f"{len(trace.dropped):,} dropped, {marked}up to {most / factor:.3g} {unit}"


def _steps(edges: np.ndarray, values: np.ndarray) -> list[tuple[float, float, float]]:
    return [
        (float(begin), float(end), float(value))
        for begin, end, value in zip(edges[:-1], edges[1:], values, strict=True)
        if value > 0
    ]


def _burst(name: str, title: str, port: str, traces: Sequence[_Seen]) -> Iterator[Picture]:
    """The same at the time at which most was dropped; none without drops."""
    spans = {place: _worst(trace.dropped) for place, trace in enumerate(traces) if len(trace.dropped)}
    if not spans:
        return
    longest = max(end - begin for begin, end in spans.values())
    width = min(LONGEST_BURST, max(SHORTEST_BURST, 1.4 * longest))
    most = max((amount for trace in traces for _, amount in trace.told), default=0.0)
    most = max(most, *(float(trace.peak.max()) for trace in traces))
    factor, unit = unit_scale("bytes", most)
    panels = []
    for place, (begin, _) in spans.items():
        trace = traces[place]
        start = max(0.0, begin - 0.2 * width)
        is_inside = (trace.dropped >= start) & (trace.dropped <= start + width)
        note = f"{int(is_inside.sum()):,} dropped from {begin * 1e3:.6g} ms, run {trace.run.number}"
        edges = np.linspace(start, start + width, BURST_STEPS + 1)
        bars = [_steps((edges - start) * 1e6, np.histogram(times, edges)[0]) for times in (trace.marked, trace.dropped)]
        row = rows.Row("", trace.look.label, note, trace.look.role)
        panels.append(timeline.Panel(row, _held(trace, start, width, factor), *bars))
    notes = "; ".join(f"{panel.row.label}: {panel.row.note}" for panel in panels)
    chart = timeline.timeline(panels, (0.0, width * 1e6), unit, "time from shortly before the first drop (us)")
    yield Picture(name, "ports", printable(f"Worst burst of drops at {port}, {title}"), f"{notes}.", draw.svg(chart))


def _worst(times: np.ndarray) -> tuple[float, float]:
    """The first and the last drop of the burst with the most of them."""
    ordered = np.sort(times)
    begins = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > PAUSE_SECONDS)
    sizes = np.diff(np.append(begins, len(ordered)))
    place = int(np.argmax(sizes))
    return float(ordered[begins[place]]), float(ordered[begins[place] + sizes[place] - 1])


def _held(trace: _Seen, start: float, width: float, factor: float) -> list[tuple[float, float, float]]:
    """What was held, from one time at which it is known to the next: at samples, and at every drop and mark."""
    known = sorted([*zip(trace.time.tolist(), trace.queue.tolist(), strict=True), *trace.told])
    times, amounts = np.array([time for time, _ in known]), np.array([amount for _, amount in known], float)
    edges = np.linspace(start, start + width, BURST_STEPS + 1)
    last = np.searchsorted(times, edges[1:], "right") - 1
    queue_bytes = np.where(last >= 0, amounts[np.maximum(last, 0)], 0.0)
    step = np.searchsorted(edges, times) - 1
    is_inside = (step >= 0) & (step < BURST_STEPS)
    np.maximum.at(queue_bytes, step[is_inside], amounts[is_inside])
    return _steps((edges - start) * 1e6, queue_bytes / factor)


def _lengths(
    name: str, title: str, port: str, saved: Saved, cell_runs: Sequence[Run], looks: Mapping[str, Look]
) -> Iterator[Picture]:
    """The runs of drops of all runs of an arm, by the input ports that lost most; the rest together."""
    by_input: dict[tuple[str, str], list[int]] = {}
    for run in cell_runs:
        if run.excluded:
            continue
        path = saved.folder / "runs" / str(run.number) / "drops.parquet"
        for item in drop_runs.read(path, {}, run.files):
            if item.port == port:
                by_input.setdefault((item.input_port, run.arm), []).extend(item.lengths)
    if not by_input:
        return
    lost: Counter[str] = Counter()
    for (input_port, _), lengths in by_input.items():
        lost[input_port] += sum(lengths)
    ranked = [input_port for input_port, _ in lost.most_common()]
    single = ranked if len(ranked) <= MOST_INPUTS + 1 else ranked[:MOST_INPUTS]
    groups = [[item] for item in single] + ([ranked[len(single) :]] if len(ranked) > len(single) else [])
    drawn = []
    for group in groups:
        label = f"by {group[0]}" if len(group) == 1 else f"by {len(group)} other input ports"
        for arm, look in looks.items():
            lengths = [length for item in group for length in by_input.get((item, arm), ())]
            if lengths:
                note = f"{sum(lengths):,} dropped, longest run {max(lengths):,}"
                row = rows.Row(printable(label), look.label, note, look.role)
                drawn.append(histogram.Histogram(row, drop_runs.shares(lengths)))
    notes = "; ".join(f"{item.row.heading}, {item.row.label}: {item.row.note}" for item in drawn)
    chart = histogram.histograms(drawn, "frames dropped in a row; height: share of the dropped frames")
    yield Picture(name, "ports", printable(f"Runs of drops at {port}, all runs, {title}"), f"{notes}.", draw.svg(chart))
