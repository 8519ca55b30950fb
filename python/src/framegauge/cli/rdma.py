"""Which path MTU of RDMA (RoCEv2) an MTU carries, asked of the agent (`frames.rdma`), and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError, InputError

__all__ = ["ask", "table"]

INVALID_PARAMS = -32602
# Somewhat more than drivers of Linux want for the largest path MTU, in a number that people remember.
ENOUGH = 4200


def ask(mtu: int) -> dict[str, Any]:
    """The agent's sums for both IP versions; InputError for an MTU that IPv4 does not have."""
    with Agent.open([find_agent(), "host"]) as agent:
        try:
            sums = [agent.request("frames.rdma", {"mtu": mtu, "family": family}) for family in (4, 6)]
        except AgentError as error:
            if error.code == INVALID_PARAMS:
                raise InputError(f"wire: {error.message.removeprefix('frames.rdma: ')}") from None
            raise
    return {"mtu": mtu, "enough_mtu": ENOUGH, "families": sums}


def table(document: dict[str, Any]) -> Sequence[str]:
    """Lines for people: what each path MTU needs and brings, and which one this MTU carries."""
    v4, v6 = document["families"]
    rows = [("path MTU", "over IPv4", "over IPv6", "Linux offers from", "payload of the wire")]
    rows += [
        (
            str(level["path_mtu"]), str(level["packet_bytes"]), str(other["packet_bytes"]), str(level["linux_mtu"]),
            f"{level['payload_share']:.1%}",
        )
        for level, other in zip(v4["levels"], v6["levels"], strict=True)
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [
        "RoCEv2: the IP MTU that each RDMA path MTU needs, and its payload as a share of the wire (IPv4, full packets)",
        *lines,
        "",
        *_parts(v4),
        "",
        *_carried(document),
    ]


def _parts(answer: dict[str, Any]) -> list[str]:
    headers = " + ".join(f"{part['bytes']} {part['name']}" for part in answer["parts"])
    return [
        f"Needed: path MTU + {headers}.",
        "The first packet of a WRITE has the RDMA header; others have 16 bytes less, one with immediate data 4 more.",
        "Drivers of Linux keep 96 bytes for any header (iboe_get_mtu()); below that they offer the next smaller one.",
    ]


def _carried(document: dict[str, Any]) -> list[str]:
    v4, v6 = document["families"]
    mtu, largest = document["mtu"], v4["levels"][-1]
    lines = []
    if v4["path_mtu"] is None:
        lines.append(f"MTU {mtu} carries no path MTU of RDMA.")
    else:
        over_v6 = "" if v4["path_mtu"] == v6["path_mtu"] else f" over IPv4, {v6['path_mtu'] or 'none'} over IPv6"
        lines.append(f"MTU {mtu} has room for path MTU {v4['path_mtu']}{over_v6}; {_offered(v4)}.")
        if v4["linux_path_mtu"] == largest["path_mtu"]:
            lines.append("There is no larger one: a larger MTU changes nothing for RDMA.")
    if v4["linux_path_mtu"] != largest["path_mtu"]:
        smaller = next((level for level in v4["levels"] if level["path_mtu"] == v4["linux_path_mtu"]), None)
        gain = "" if smaller is None else f", {largest['payload_share'] / smaller['payload_share'] - 1:+.1%} payload"
        lines.append(
            f"Path MTU {largest['path_mtu']} needs an MTU of {largest['packet_bytes']} ({largest['linux_mtu']} on Linux"
            f"{gain}): {document['enough_mtu']} is enough, and for RDMA 9000 does no more."
        )
    return lines


def _offered(answer: dict[str, Any]) -> str:
    if answer["linux_path_mtu"] == answer["path_mtu"]:
        return "Linux offers it"
    return f"Linux offers {answer['linux_path_mtu'] or 'none'}"
