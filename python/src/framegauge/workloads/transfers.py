"""The tables of transfers of a stream: the goodput of each flow, and that of groups of flows beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from framegauge.testbeds.base import Json

__all__ = [
    "TRANSFERS",
    "answers",
    "column",
    "delivered",
    "flow_rates",
    "flow_times",
    "of_groups",
    "share_of_few",
    "tables_of",
]


TRANSFERS = "transfers delivered anything"  # what `answers` counts


def tables_of(record: Json, tables: Mapping[str, pa.Table]) -> Iterator[tuple[Json, pa.Table]]:
    """Each `stream.run` of the record with its transfers, if it has any."""
    for run in record["runs"]:
        table = tables.get(run["transfers"])
        if table is not None and table.num_rows:
            yield run, table


def column(table: pa.Table, name: str) -> list[float]:
    """A column of times, in seconds."""
    times: list[float] = table.column(f"{name}_seconds").to_pylist()
    return times


def flow_rates(table: pa.Table) -> list[float]:
    """The bytes per second of each flow of one client, over all its rounds."""
    return [size / seconds for size, seconds in _flows(table) if seconds > 0]


def flow_times(table: pa.Table) -> list[list[float]]:
    """How long the transfers of each flow of one client took, in seconds, including connection set-up."""
    times: dict[int, list[float]] = {}
    for flow, start, end in zip(
        table.column("flow").to_pylist(), column(table, "start"), column(table, "end"), strict=True
    ):
        times.setdefault(flow, []).append(end - start)
    return list(times.values())


def _flows(table: pa.Table) -> list[tuple[float, float]]:
    """The bytes of each flow, and the seconds that they took."""
    totals: dict[int, list[float]] = {}
    rows = zip(
        table.column("flow").to_pylist(), table.column("counted_bytes").to_pylist(), column(table, "start"),
        column(table, "counted"), strict=True,
    )  # fmt: skip
    for flow, size, start, end in rows:
        sums = totals.setdefault(flow, [0.0, 0.0])
        sums[0] += size
        sums[1] += end - start
    return [(size, seconds) for size, seconds in totals.values()]


def delivered(sender: str, tables: Iterable[pa.Table]) -> Json:
    """Of `Record.answers`: how many flows a host sent, and how many of them delivered anything."""
    sizes = [size for table in tables for size, _ in _flows(table)]
    active = sum(size > 0 for size in sizes)
    return {"asked": len(sizes), "answered": active, "host": sender, "what": TRANSFERS, "may_starve": True}


def answers(record: Json, tables: Mapping[str, pa.Table]) -> dict[str, Json]:
    """The same by sender and receiver, of every `stream.run` of the record."""
    directions: dict[tuple[str, str], list[pa.Table]] = {}
    for run, table in tables_of(record, tables):
        ends = (run["client"], run["server"])
        directions.setdefault(ends[::-1] if run["reverse"] else ends, []).append(table)
    return {f"{sender} to {receiver}": delivered(sender, parts) for (sender, receiver), parts in directions.items()}


def of_groups(record: Json, tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    """The groups of `sharing` with their mean goodput per flow.

    A group that received less than `floor_bytes` counts as having received these (`floored`), since nothing has no
    ratio to anything, and a run in which the few starve is what a study looks for.
    """
    shared = record["sharing"]
    flows: dict[str, list[tuple[float, float]]] = {}
    for run, table in tables_of(record, tables):
        flows.setdefault(run["client"], []).extend(item for item in _flows(table) if item[1] > 0)
    longest = max((seconds for item in flows.values() for _, seconds in item), default=0.0)
    groups = []
    for group in shared["groups"]:
        group_flows = [item for host in group["senders"] for item in flows.get(host, ())]
        rate, floored = sum(size / seconds for size, seconds in group_flows), False
        if sum(size for size, _ in group_flows) < shared["floor_bytes"] and longest > 0:
            rate, floored = shared["floor_bytes"] / longest, True
        groups.append({**group, "goodput_bits_per_second": 8.0 * rate / group["flows"], "floored": floored})
    return groups


def share_of_few(record: Json) -> float | None:
    """The mean goodput per flow of the few, divided by that of the many; None if neither received anything."""
    sides = {group["name"]: group for group in record["sharing"]["groups"]}
    few, many = sides["few"], sides["many"]
    if (few["floored"] and many["floored"]) or not many["goodput_bits_per_second"]:
        return None
    share: float = few["goodput_bits_per_second"] / many["goodput_bits_per_second"]
    return share
