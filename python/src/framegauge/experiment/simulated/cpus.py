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
    busy = {each["host"]: sum(each["busy_seconds"]) for each in record.get("cpus", ())}
    gigabytes = record["workload"].get("bytes", 0) / GIGABYTE
    found = {}
    for metric, side in _SIDES.items():
        hosts = set(record["workload"].get(side, ()))
        if gigabytes > 0 and hosts and hosts <= busy.keys():
            found[metric] = sum(busy[host] for host in hosts) / gigabytes
    return found


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
            each["host"]: each["received_packets"] / each["received_aggregates"]
            for each in record["cpus"]
            if each["received_aggregates"]
        },
    }


def _cores(record: Json) -> Iterable[float]:
    return (seconds for each in record["cpus"] for seconds in each["busy_seconds"])
