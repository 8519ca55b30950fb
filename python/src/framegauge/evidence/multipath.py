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
    subflow_count = multipath.subflows(conditions.mptcp)
    for host, counts in record["workload"].get("subflows", {}).items():
        if list(counts) != ([] if subflow_count is None else [subflow_count]):
            text = ", ".join(map(str, counts)) or "none: its connections were TCP"
            yield f"subflows of each connection from {host}: requested {subflow_count or 'none'}, found {text}"
    if not record["workload"].get("subflows"):
        yield "subflows of connections: not read, expected readings of all sending ends"
