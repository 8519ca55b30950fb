"""Proof of MPTCP: how many subflows the live connections had, as the kernel told of each (`MPTCP_TCPINFO`)."""

from __future__ import annotations

from collections.abc import Iterator

from framegauge.networks import multipath
from framegauge.testbeds.base import Conditions, Json

__all__ = ["multipath_failures"]


def multipath_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each host whose connections had other numbers of subflows than requested; one that had none has
    fallen back to TCP."""
    if conditions.mptcp is None:
        return
    asked = multipath.subflows(conditions.mptcp)
    for host, found in record["workload"].get("subflows", {}).items():
        if list(found) != ([] if asked is None else [asked]):
            told = ", ".join(map(str, found)) or "none: its connections were TCP"
            yield f"subflows of each connection from {host}: requested {asked or 'none'}, found {told}"
    if not record["workload"].get("subflows"):
        yield "subflows of connections: not read, expected readings of all sending ends"
