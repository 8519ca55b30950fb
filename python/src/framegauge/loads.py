"""The table of workloads: what a sentence calls the work, and which metrics a study judges that declares none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["LOADS", "Load", "waits_for_all"]

_BLOCKS = ("goodput", "latency_p50", "latency_p99", "receiver_cpu_cost")
_BULK = ("goodput", "receiver_cpu_cost")
_REQUESTS = ("latency_p50", "latency_p99", "receiver_cpu_cost")


@dataclass(frozen=True)
class Load:
    """`what`: the work, as in "the goodput of NFS" and "the completion time of MapReduce jobs". `judged`: its metrics
    by default. `waits_for_all`: its user waits for the last of several transfers at once."""

    what: str
    judged: tuple[str, ...] = ()
    waits_for_all: bool = False


LOADS: Mapping[str, Load] = {
    "stream": Load("bulk transfers", _BULK),
    "iperf3": Load("iperf3 transfers", _BULK),
    "ftp": Load("FTP transfers", _BULK),
    "rr": Load("requests", _REQUESTS),
    "mixed": Load("requests beside bulk transfers", _BLOCKS),
    "datagrams": Load("datagrams", ("delay_p50", "delay_p99", "jitter", "delivered")),
    "quic": Load("QUIC transfers", _BULK),
    "incast": Load("reads from many servers at once", ("completion_time", *_BULK), waits_for_all=True),
    "iscsi": Load("iSCSI", _BLOCKS),
    "nfs": Load("NFS", _BLOCKS),
    "ceph": Load("Ceph", _BLOCKS),
    "web": Load("web requests"),
    "command": Load("the program"),
    "mapreduce": Load("MapReduce jobs"),
    "shuffle": Load("shuffles", ("completion_time", "receiver_cpu_cost"), waits_for_all=True),
    "users": Load("requests of users", _REQUESTS),
    "arrivals": Load("arriving flows", ("slowdown_p50", "slowdown_p99", "receiver_cpu_cost")),
    "replay": Load("recorded flows", ("completion_time", "receiver_cpu_cost")),
}
_ALONE = (None, "one-to-one")


def waits_for_all(workload: str, conditions: Mapping[str, Any]) -> bool:
    """Whether the last of several transfers at once decides when the work is done: by the workload, or because several
    hosts send to one."""
    if workload in LOADS and LOADS[workload].waits_for_all:
        return True
    return workload == "stream" and (conditions.get("pattern") not in _ALONE or conditions.get("senders") is not None)
