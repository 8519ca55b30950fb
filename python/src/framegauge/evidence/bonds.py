"""What the members of bonds carried. Record in, bytes out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from framegauge.networks import topologies
from framegauge.testbeds.base import Conditions, Json

__all__ = ["carried", "members"]

MOST_HOSTS = 64  # that readings list


def members(conditions: Conditions) -> int:
    """The number of NICs that are the bond of a host; 1 without bonds."""
    return topologies.members(conditions.network.get("topology", {}))


def carried(conditions: Conditions, record: Json, hosts: Collection[str]) -> dict[str, dict[str, list[int]]]:
    """By host, of its bond member by member: the bytes that it sent, and those that its switch sent to it (headers and
    FCS included). Empty without bonds, and of more hosts than readings list."""
    network: Mapping[str, Any] | None = record["rack"].get("network")
    count = members(conditions)
    if count == 1 or network is None or len(hosts) > MOST_HOSTS:
        return {}
    sent = {port["port"]: port["sent_bytes"] for port in record["measure"]["fabric"]["ports"]}
    links = {(port["from"], port["to"]): sent[port["port"]] for port in network["ports"]}
    by_end = {end: {} for link in links for end in link}  # type: dict[str, dict[str, int]]
    for (one, other), amount in links.items():
        by_end[one]["sent_bytes"] = amount
        by_end[other]["received_bytes"] = amount
    names = {host: [f"{host}.{number}" for number in range(1, count + 1)] for host in hosts}
    return {
        host: {key: [by_end[end][key] for end in ends] for key in ("sent_bytes", "received_bytes")}
        for host, ends in names.items()
    }
