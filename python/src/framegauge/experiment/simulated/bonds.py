"""How the flows of a simulated run came to lie on the members of bonds, and what these carried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.evidence.bonds import carried, members
from framegauge.networks.topologies import node_of
from framegauge.testbeds.base import Conditions, Json
from framegauge.workloads.work import Flow, Work

__all__ = ["bond_readings", "bulk_side", "exits"]

MOST_FLOWS = 10_000  # of which a record says the member of each


def bulk_side(flow: Flow) -> str:
    """The side that sends the largest message of a flow."""
    return max(flow.steps, key=lambda step: float("inf") if step.size_bytes is None else step.size_bytes).side


def exits(result: Mapping[str, Any]) -> Json:
    """`exits` of the record: by flow, the ends by which client and server sent; nothing without bonds."""
    of_flows = [flow["exits"] for flow in result["flows"] if "exits" in flow]
    return {"exits": of_flows} if 0 < len(of_flows) <= MOST_FLOWS else {}


def bond_readings(conditions: Conditions, work: Work, record: Json) -> dict[str, Any]:
    """`bonds`: by host, member by member: bytes sent and received, and the flows whose bulk it sent."""
    hosts = dict.fromkeys(node_of(end) for flow in work.flows for end in (flow.client, flow.server))
    bonds: dict[str, dict[str, list[int]]] = carried(conditions, record, hosts)
    if not bonds:
        return {}
    flows = {host: [0] * members(conditions) for host in bonds}
    for flow, ends in zip(work.flows, record["simulation"].get("exits", ()), strict=False):
        host, _, number = ends[0 if bulk_side(flow) == "client" else 1].partition(".")
        flows[host][int(number) - 1] += 1
    known = "exits" in record["simulation"]
    return {"bonds": {host: {**({"flows": flows[host]} if known else {}), **sums} for host, sums in bonds.items()}}
