"""What the hosts of a rack got of the CPUs in a run: their own use, other programs' use, and waits. Record in, figures
out.

A machine that is busy with other work carries a run as well as an idle one if all that makes up the hosts goes before
the rest: then CPU time that others use is time that was to spare. So it is asked what the hosts used, and whether they
had precedence, and not whether the machine was idle. Where something of theirs has no precedence, it is asked how long
it waited; that includes waits for one another, so such a run is excluded sooner than need be, and never too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from framegauge.testbeds.base import Json

__all__ = ["SHARED", "Scheduling", "of_run", "readings"]

REAL_TIME = "real time"
SHARED = 0.05  # of the hosts' CPUs: other programs that use more change CPU costs and short latencies


@dataclass(frozen=True)
class Scheduling:
    """Shares of the hosts' CPUs, each of all of them together; `waited` is a share of the run."""

    own: float
    others: float
    idle: float
    waited: float | None  # of what had no precedence, on the host that waited longest; None: not measured
    precedes: bool  # whether all of the hosts' work had precedence

    @property
    def spare(self) -> float:
        """The share that the hosts could have had: what was idle, and what gives way to them."""
        return self.idle + self.others

    @property
    def is_shared(self) -> bool:
        """Whether other programs used more of the CPUs than leaves costs and short latencies as they are."""
        return self.others > SHARED


def of_run(record: Json) -> Scheduling | None:
    """What a run got; None where no agent says so, or no CPU is the hosts'."""
    hosts = [_since(before, record["counters_after"][name]) for name, before in record["counters_before"].items()]
    if None in hosts:
        return None
    measure = record["measure"]
    cpus = [cpu for cpu in measure["cpus"] if cpu["role"] in ("hosts", "shared")]
    capacity = measure["elapsed_seconds"] * len(cpus)
    if capacity <= 0:
        return None
    fabric = measure["fabric"]
    shared = fabric["thread"]["cpu_seconds"] if fabric is not None and cpus[0]["role"] == "shared" else 0.0
    own_seconds = shared + sum(host["used"] for host in hosts if host is not None)
    busy = sum(cpu[f"{state}_seconds"] for cpu in cpus for state in ("user", "nice", "system"))
    waits = [_waited(host, measure["elapsed_seconds"]) for host in hosts if host is not None]
    measured = [wait for wait in waits if wait is not None]
    return Scheduling(
        own=own_seconds / capacity,
        others=max(0.0, busy - own_seconds) / capacity,
        idle=sum(cpu["idle_seconds"] + cpu["iowait_seconds"] for cpu in cpus) / capacity,
        waited=None if None in waits else max(measured, default=0.0),
        precedes=all(_precedes(host) for host in hosts if host is not None),
    )


def _since(before: Json, after: Json) -> Json | None:
    """What one host's threads got between two readings of its counters."""
    if "scheduling" not in before or "scheduling" not in after:
        return None
    early, late = before["scheduling"], after["scheduling"]
    parts = {name: _difference(early[name], late[name]) for name in ("generators", "receive_path", "programs")}
    total = sum(part["run_seconds"] for part in parts.values())
    # What has prepared a run, and ended before it, does not count.
    gave_way = late["programs"]["gave_way_seconds"] > early["programs"]["gave_way_seconds"]
    return {**parts, "used": total, "precedence": late["precedence"], "gave_way": gave_way}


def _difference(before: Json, after: Json) -> Json:
    waits = before["waited_seconds"], after["waited_seconds"]
    waited = None if None in waits else waits[1] - waits[0]
    return {"run_seconds": after["run_seconds"] - before["run_seconds"], "waited_seconds": waited}


def _precedes(host: Json) -> bool:
    return bool(host["precedence"] == REAL_TIME) and not host["gave_way"]


def _waited(host: Json, elapsed_seconds: float) -> float | None:
    """The share of the run in which what has no precedence waited on a host."""
    names = ("programs",) if host["precedence"] == REAL_TIME else ("generators", "programs")
    waits = [host[name]["waited_seconds"] for name in names] if not _precedes(host) else []
    return None if None in waits else sum(waits) / elapsed_seconds


def readings(record: Json) -> Iterator[tuple[str, Any]]:
    """The readings for the line of a run, by name."""
    if (shares := of_run(record)) is not None:
        yield "own_share_hosts", shares.own
        yield "other_share_hosts", shares.others
        yield "waited_share_hosts", shares.waited
        yield "shared_cpus", shares.is_shared
        precedence = {host["scheduling"]["precedence"] for host in record["counters_after"].values()}
        yield "precedence", ", ".join(sorted(precedence))
