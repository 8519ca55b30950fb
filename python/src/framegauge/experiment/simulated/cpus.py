"""What the modelled CPUs of hosts did in a simulation. Record in, figures out."""

from __future__ import annotations

from collections.abc import Iterable

from framegauge.testbeds.base import Json

__all__ = ["metrics", "readings"]

GIGABYTE = 1e9
_SIDES = {"receiver_cpu_cost": "receivers", "sender_cpu_cost": "senders"}


def metrics(record: Json) -> dict[str, float]:
    """The metrics of CPUs: core-seconds per gigabyte (10^9 bytes) delivered, of all hosts of a side that have a model;
    without those of a side that has none, and of workloads without sides."""
    busy = {row["host"]: sum(row["busy_seconds"]) for row in record.get("cpus", ())}
    gigabytes = record["workload"].get("bytes", 0) / GIGABYTE
    costs = {}
    for metric, side in _SIDES.items():
        hosts = set(record["workload"].get(side, ()))
        if gigabytes > 0 and hosts and hosts <= busy.keys():
            costs[metric] = sum(busy[host] for host in hosts) / gigabytes
    return costs


def readings(record: Json) -> Json:
    """`busiest_core_share`: the share of the run for which the busiest core of all was busy.

    `packets_per_aggregate`: what was merged, by host.
    """
    if not record.get("cpus"):
        return {}
    elapsed = record["measure"]["elapsed_seconds"]
    return {
        "busiest_core_share": max(_cores(record)) / elapsed if elapsed > 0 else None,
        "packets_per_aggregate": {
            row["host"]: row["received_packets"] / row["received_aggregates"]
            for row in record["cpus"]
            if row["received_aggregates"]
        },
    }


def _cores(record: Json) -> Iterable[float]:
    return (seconds for row in record["cpus"] for seconds in row["busy_seconds"])
