"""What each flow of a run carried over time, with its group: the few, those between, or the many.

From the bytes that the receiver acknowledged, as the sending sockets were sampled: linear between two samples, and
nothing before the connection was opened.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from framegauge.record import FEW_WINDOW_SECONDS
from framegauge.testbeds.base import Json

__all__ = ["over_time"]

_COLUMNS = {"time_seconds", "round", "flow", "bytes_acked"}


def over_time(record: Json, tables: Mapping[str, pa.Table]) -> pa.Table | None:
    """A row for each flow and window of FEW_WINDOW_SECONDS, from the first start of a flow on; None without groups, or
    if a sender was not sampled. A window that the run did not fill is left out.

    Columns: group, sender, flow (from 0, of its sender), begin_seconds, end_seconds, goodput_bits_per_second.
    """
    if "sharing" not in record or "runs" not in record:
        return None
    names = {host: group["name"] for group in record["sharing"]["groups"] for host in group["senders"]}
    courses: dict[tuple[str, int], list[tuple[float, np.ndarray, np.ndarray]]] = {}
    for run in record["runs"]:
        samples = tables.get(run["transfers"].replace("transfers", "samples", 1))
        transfers = tables.get(run["transfers"])
        if samples is None or transfers is None or not set(samples.column_names) >= _COLUMNS:
            return None
        for flow, course in _of_run(run["result"]["started_seconds"], samples, transfers):
            courses.setdefault((run["client"], flow), []).append(course)
    if not courses:
        return None
    begin = min(start for flow_courses in courses.values() for start, _, _ in flow_courses)
    end = max(float(times[-1]) for flow_courses in courses.values() for _, times, _ in flow_courses if len(times))
    edges = FEW_WINDOW_SECONDS * np.arange(int((end - begin) / FEW_WINDOW_SECONDS + 1e-6) + 1)
    if len(edges) < 2:
        return None
    flows = sorted(courses, key=lambda key: (list(names).index(key[0]), key[1]))
    carried = np.concatenate([8 * np.diff(_acked(courses[key], begin + edges)) / FEW_WINDOW_SECONDS for key in flows])
    windows = len(edges) - 1
    return pa.table({
        "group": [names[sender] for sender, _ in flows for _ in range(windows)],
        "sender": [sender for sender, _ in flows for _ in range(windows)],
        "flow": pa.array([flow for _, flow in flows for _ in range(windows)], pa.uint32()),
        "begin_seconds": np.tile(edges[:-1], len(flows)),
        "end_seconds": np.tile(edges[1:], len(flows)),
        "goodput_bits_per_second": carried,
    })  # fmt: skip


def _of_run(
    started_seconds: float, samples: pa.Table, transfers: pa.Table
) -> list[tuple[int, tuple[float, np.ndarray, np.ndarray]]]:
    """Each connection of a `stream.run` with the number of its flow: its start, the times of its samples on the clock
    that all hosts share, and the bytes acknowledged by then."""
    columns = {name: samples[name].to_numpy(zero_copy_only=False) for name in _COLUMNS}
    rounds, flows, starts = (
        transfers[name].to_numpy(zero_copy_only=False) for name in ("round", "flow", "start_seconds")
    )  # fmt: skip
    courses = []
    for number, flow, start in zip(rounds, flows, starts, strict=True):
        mask = (columns["round"] == number) & (columns["flow"] == flow)
        order = np.argsort(columns["time_seconds"][mask], kind="stable")
        times = started_seconds + columns["time_seconds"][mask][order]
        courses.append(
            (int(flow), (started_seconds + float(start), times, columns["bytes_acked"][mask][order].astype(float)))
        )
    return courses


def _acked(courses: list[tuple[float, np.ndarray, np.ndarray]], at_seconds: np.ndarray) -> np.ndarray:
    """The bytes of all connections of a flow that were acknowledged by each of these times."""
    total = np.zeros(len(at_seconds))
    for start, times, acked in courses:
        total += np.interp(at_seconds, np.concatenate(([start], times)), np.concatenate(([0.0], acked)), left=0.0)
    return total
