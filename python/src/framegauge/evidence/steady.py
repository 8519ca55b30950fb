"""The steady part of a run, without its warm-up and its end.

MSER-5 (White 1997, Simulation 69:323; White, Cobb & Spratt 2000, WSC): among means of five samples, as many are left
out at the beginning as minimise the standard error of the rest, taken as independent; at most half. The end is trimmed
by the same rule backwards, at most a quarter. This applies only to streams of a stated duration: for a transfer of a
stated size, the beginning is part of what is measured.

A run that ends while its flows still speed up has no steady part, and nothing that is left out makes one of it: slow
start doubles the rate each RTT, and after its first loss CUBIC takes tens of RTTs to come back (RFC 9438, section 4.2).
So in a run of few RTTs whose rate still rises within what is kept, goodput is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["Steady", "bulk", "of_streams", "trim"]

BATCH = 5
LEAST_BATCHES = 8  # with fewer, nothing is trimmed
MOST_STEPS = 10_000  # of the common grid of all flows
FEW_RTTS = 200
RISE = 1.25  # of the rate, from the first half of what is kept to the second: more than a sawtooth of CUBIC leaves
LONGER = 4


@dataclass(frozen=True)
class Steady:
    """The steady part of a run, in seconds since the first stream began, its goodput, and how many times as fast its
    second half is as its first."""

    begin_seconds: float
    end_seconds: float
    of_seconds: float
    bits_per_second: float
    rise: float

    def as_json(self) -> dict[str, Any]:
        """The steady part for the line of a run."""
        return {
            "rule": "MSER-5",
            "begin_seconds": round(self.begin_seconds, 6),
            "end_seconds": round(self.end_seconds, 6),
            "of_seconds": round(self.of_seconds, 6),
        }


def bulk(
    metrics: Mapping[str, float], part: Steady | None, rtt_seconds: float
) -> tuple[dict[str, float], dict[str, str]]:
    """The metrics with the goodput of the steady part, and why there is none where flows still sped up at the end."""
    if part is None:
        return dict(metrics), {}
    if part.rise <= RISE or part.of_seconds >= FEW_RTTS * rtt_seconds:
        return {**metrics, "goodput": part.bits_per_second}, {}
    why = (
        f"too short for a bulk figure: the rate still rose within {_milliseconds(part.of_seconds)}, "
        f"{part.of_seconds / rtt_seconds:.0f} RTTs; try a duration of {_milliseconds(LONGER * part.of_seconds)} or more"
    )
    lacking = {name: why for name in ("goodput", "smallest_goodput") if name in metrics}
    return {name: value for name, value in metrics.items() if name not in lacking}, lacking


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def of_streams(record: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Steady | None:
    """The steady part of streams of a stated duration that all send from the client; None for others, or too few
    samples."""
    runs = record.get("runs", [])
    if record.get("transfer_bytes", 0) is not None or not runs or any(run.get("reverse", True) for run in runs):
        return None
    started = min(run["result"]["started_seconds"] for run in runs)
    flows = [flow for run in runs for flow in _flows(run, tables, run["result"]["started_seconds"] - started)]
    if not flows:
        return None
    end = min(float(times[-1]) for times, _ in flows)
    between = max(float(np.median(np.diff(times))) for times, _ in flows)
    grid = np.arange(0.0, end, max(between, end / MOST_STEPS))
    if len(grid) < BATCH * LEAST_BATCHES:
        return None
    total = np.sum([np.interp(grid, times, amounts, left=0.0) for times, amounts in flows], axis=0)
    first, last = trim(np.diff(total).tolist())
    if last - first < BATCH:
        return None
    rate = 8.0 * float(total[last] - total[first]) / float(grid[last] - grid[first])
    middle = (first + last) // 2
    early, late = float(total[middle] - total[first]), float(total[last] - total[middle])
    rise = late / early if early > 0 else math.inf
    return Steady(float(grid[first]), float(grid[last]), end, rate, rise) if rate > 0 else None


def _flows(
    run: Mapping[str, Any], tables: Mapping[str, pa.Table], offset: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The times and bytes of each flow of a client that have arrived by then.

    What waits behind a hole (SACK, RFC 2018) has arrived, and is acknowledged at once when the hole is filled: as
    acknowledged bytes alone it would pass the rate of the link.
    """
    table = tables.get(run["transfers"].replace("transfers", "samples", 1))
    if table is None or not table.num_rows:
        return []
    flow, times, acknowledged = (table.column(name).to_numpy() for name in ("flow", "time_seconds", "bytes_acked"))
    amounts = acknowledged.astype(float)
    if "sacked_segments" in table.column_names:  # not in simulations, nor in results of older versions
        behind, size = (table.column(name).to_numpy().astype(float) for name in ("sacked_segments", "mss_bytes"))
        amounts = amounts + behind * size
    return [
        (times[flow == flow_number] + offset, amounts[flow == flow_number])
        for flow_number in np.unique(flow)
        if np.count_nonzero(flow == flow_number) > BATCH * LEAST_BATCHES // 2
    ]


def trim(samples: Sequence[float]) -> tuple[int, int]:
    """The first, and one past the last, sample to keep; (0, len(samples)) if there are too few."""
    values = np.asarray(samples, dtype=float)
    count = len(values) // BATCH
    if count < LEAST_BATCHES:
        return 0, len(values)
    means = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    begin = _left_out(means, count // 2)
    end = _left_out(means[begin:][::-1], count // 4)
    return begin * BATCH, len(values) if end == 0 else (count - end) * BATCH


def _left_out(means: np.ndarray, most: int) -> int:
    scores = [float(means[cut:].var()) / (len(means) - cut) for cut in range(min(most, len(means) - 1) + 1)]
    return int(np.argmin(scores))
