"""How a UDP datagram, or an answer of NFS, is framed: asked of the agent (`frames.datagram`), and as a table.

The arithmetic is in crates/frames; here are only sums of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError, InputError

__all__ = ["JUMBO", "ask", "table"]

INVALID_PARAMS = -32602
JUMBO = 9000
_NAMES = {"ethernet": "Ethernet", "fddi": "FDDI", "atm": "ATM"}


def ask(size: int, nfs_read: bool, mtu: int | None) -> dict[str, Any]:
    """The agent's sum for Ethernet with this MTU (None: with 1500, and with 9000), FDDI and ATM; InputError if there is
    no such datagram, or no such MTU."""
    ethernet = [{"medium": "ethernet", "mtu": link_mtu} for link_mtu in ((None, JUMBO) if mtu is None else (mtu,))]
    links = [*ethernet, {"medium": "fddi", "mtu": None}, {"medium": "atm", "mtu": None}]
    request = {"bytes": size, "nfs_read": nfs_read, "family": 4, "links": links}
    with Agent.open([find_agent(), "host"]) as agent:
        try:
            return agent.request("frames.datagram", request)
        except AgentError as error:
            if error.code == INVALID_PARAMS:
                raise InputError(f"wire: {error.message.removeprefix('frames.datagram: ')}") from None
            raise


def table(found: dict[str, Any]) -> list[str]:
    """Lines for people: the packet from the data outwards, and what each link makes of it."""
    rows = [("data of a READ" if found["nfs_read"] else "data", str(found["bytes"]), "")]
    rows += [(header["name"], f"+{header['bytes']}", header["source"]) for header in found["headers"]]
    rows.append(("packet", str(found["packet_bytes"]), "IPv4, if nothing cuts it"))
    lines = _aligned(rows)
    for link in found["links"]:
        lines += ["", *_link(link)]
    most = max(len(link["packets_bytes"]) for link in found["links"])
    if most > 1:
        lines += [
            "",
            "A receiver that misses one fragment drops the others, too: all packets of the datagram are sent again.",
        ]
    return lines


def _link(link: dict[str, Any]) -> list[str]:
    packets, source = link["packets_bytes"], link["mtu_source"]
    sizes = " + ".join(_times(list(same)) for _, same in groupby(packets))
    count = "1 packet" if len(packets) == 1 else f"{len(packets)} packets"
    cells = "" if link["cells"] is None else f" in {link['cells']} cells of 53 bytes"
    title = f"{_NAMES[link['medium']]}, MTU {link['mtu']}" + ("" if source is None else f" ({source})")
    rows = [("packets", str(len(packets)), f"{sizes} bytes with IP headers")]
    rows += [(f"each: {part['name']}", f"+{part['bytes']}", part["source"]) for part in link["parts"]]
    rows.append(("on the wire", str(link["wire_bytes"]), ""))
    return [f"{title}: {count}{cells}", *(f"  {line}" for line in _aligned(rows))]


def _times(same: Sequence[int]) -> str:
    return f"{len(same)} x {same[0]}" if len(same) > 1 else str(same[0])


def _aligned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    name, number = (max(len(row[place]) for row in rows) for place in (0, 1))
    return [f"{row[0]:<{name}}  {row[1]:>{number}}  {row[2]}".rstrip() for row in rows]
