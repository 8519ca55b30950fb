"""One echo request that fills an MTU, by the `ping` of each system: some count the whole packet, others its payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.errors import InputError

__all__ = ["document", "table"]

HEADERS = 28  # IPv4 (RFC 791) and ICMP (RFC 792)
LARGEST, LEAST = 65_535, 68


@dataclass(frozen=True)
class System:
    """The `ping` of a system. `counts_packet`: its size is that of the IP packet, else that of the ICMP payload."""

    name: str
    command: str
    counts_packet: bool

    def size(self, mtu: int) -> int:
        """The number to type for a packet of that many bytes."""
        return mtu if self.counts_packet else mtu - HEADERS


SYSTEMS = (
    System("Linux", "ping -4 -M do -s {size} {host}", False),
    System("macOS, FreeBSD", "ping -D -s {size} {host}", False),
    System("Windows", "ping -4 -f -l {size} {host}", False),
    System("Junos", "ping {host} size {size} do-not-fragment", False),
    System("NX-OS", "ping {host} packet-size {size} df-bit", False),
    System("IOS, IOS XE", "ping {host} size {size} df-bit", True),
    System("IOS XR", "ping {host} size {size} donotfrag", True),
    System("EOS", "ping {host} size {size} df-bit", True),
)


def document(mtu: int, host: str) -> dict[str, Any]:
    """The commands for packets of `mtu` bytes; InputError for an MTU that IPv4 does not have, or for no name."""
    if not LEAST <= mtu <= LARGEST:
        raise InputError(f"--ping: found an MTU of {mtu}, expected one of IPv4 from {LEAST} to {LARGEST}")
    if not host or host.startswith("-") or not all(item.isalnum() or item in ".-_" for item in host):
        raise InputError(f'--ping: found "{host}", expected an IPv4 address or the name of a host')
    return {
        "mtu": mtu,
        "header_bytes": HEADERS,
        "commands": [
            {
                "system": item.name,
                "command": item.command.format(size=item.size(mtu), host=host),
                "counts": "the packet" if item.counts_packet else "the payload",
            }
            for item in SYSTEMS
        ],
    }


def table(pings: dict[str, Any]) -> Sequence[str]:
    """Lines for a terminal."""
    rows = [(entry["system"], entry["counts"], entry["command"]) for entry in pings["commands"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"One packet of {pings['mtu']} bytes that may not be cut up (IPv4; {HEADERS} bytes are headers of IP and ICMP)",
        "",
    ]
    lines += [f"  {name:{widths[0]}}  counts {counts:{widths[1]}}  {command}" for name, counts, command in rows]
    return [
        *lines,
        "",
        "An answer shows that way and the way back. `framegauge check` tests each way, and more than one flow.",
    ]
