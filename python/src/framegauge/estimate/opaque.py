"""What a load has without TCP that can be read, and fills packets: what it is by all signs, and what is inside. Pure.

The agent tells packets by protocol, port and first bytes, and of tunnels what fits inside of the longest ones
(`estimate.end`, pipe/README.md). Nobody outside of a tunnel knows what a larger MTU brings to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["LITTLE", "UNREAD", "Opaque", "of_sample", "shown", "text", "unread", "whose_interface"]

Json = Mapping[str, Any]
LITTLE = 0.01  # of the bytes: less is left out
LARGE_SHARE = 0.1  # of a kind's bytes in packets longer than half of the MTU, from which on it fills packets
WAYS = ("sent", "received")
TAILSCALE = 41_641
ROCE_V2 = 4791  # IANA
UNREAD = "unread"  # the class of what no connection of the host has carried, where no headers were sampled
UNREAD_SHARE = 0.05  # of the bytes: what is taken of headers, repeats and handshakes is not exact
UNREAD_RATE = 10_000  # bytes per second: less is no load, such as what controls the host
ETHERNET = 14  # bytes before the IP header in what drivers count
TUNNELS = ("wireguard", "esp", "esp in udp", "openvpn")
NAMES = {
    "wireguard": "WireGuard", "esp": "ESP (IPsec)", "esp in udp": "ESP in UDP (IPsec)", "openvpn": "OpenVPN",
    "quic": "QUIC", "datagram": "UDP", "fragment": "fragments of datagrams", "other": "other protocols",
    UNREAD: "packets whose headers were not read",
}  # fmt: skip


@dataclass(frozen=True)
class Opaque:
    """Sampled packets of one direction of a kind whose packets fill the MTU: of a tunnel that encrypts (WireGuard, ESP
    in UDP), of QUIC, pieces of datagrams. A larger MTU may make them fewer."""

    kind: Json
    packets: int
    bytes: int

    def least(self, target: int) -> float:
        """The fewest packets that they may become."""
        return min(float(self.packets), self.bytes / target)


def of_sample(sample: Json) -> list[Opaque]:
    """The opaque packets of an interface, by direction: what fills packets one way is answered the other way, and how
    many answers are left nobody knows either."""
    return [
        Opaque(kind, kind[way]["packets"], kind[way]["bytes"])
        for kind in sample["foreign"]
        if any(kind[way]["large_bytes"] >= LARGE_SHARE * kind[way]["bytes"] > 0 for way in WAYS)
        for way in WAYS
    ]


def unread(readings: Json, carried: Mapping[str, tuple[int, int]], mtu: int) -> list[Opaque]:
    """What interfaces counted beyond what connections of the host have `carried` (packets and bytes with headers), by
    direction: forwarded, of tunnels, of other network namespaces, for all that is known. Empty if it is little."""
    kind: dict[str, Any] = dict.fromkeys(("family", "port", "longest_bytes", "layer", "inner_mtu"))
    whole = 0
    for way in WAYS:
        counted = [entry[way] for entry in readings["interfaces"]]
        octets, packets = (sum(entry[key] for entry in counted) for key in ("bytes", "packets"))
        octets = max(0, octets - ETHERNET * packets)
        whole += octets
        rest = max(0, octets - carried[way][1])
        kind[way] = {"packets": max(packets - carried[way][0], -(-rest // mtu)) if rest else 0, "bytes": rest}
    rest = sum(kind[way]["bytes"] for way in WAYS)
    if rest < max(UNREAD_SHARE * whole, UNREAD_RATE * readings["seconds"]):
        return []
    kind["class"] = UNREAD
    return [Opaque(kind, kind[way]["packets"], kind[way]["bytes"]) for way in WAYS]


def shown(interface: str, opaque: Sequence[Opaque], of_bytes: int, tunnels: Sequence[Json]) -> Iterator[dict[str, Any]]:
    """Each kind of an interface that is not too little, the largest first. `tunnels`: those that end on the host."""
    kinds = {id(entry.kind): entry.kind for entry in opaque}.values()
    sizes = [(sum(kind[way]["bytes"] for way in WAYS) / max(1, of_bytes), kind) for kind in kinds]
    for share, kind in sorted(sizes, key=lambda entry: -entry[0]):
        if share < LITTLE:
            continue
        inner = kind["inner_mtu"]
        ends = [entry["interface"] for entry in tunnels if inner is not None and entry["mtu"] == inner]
        yield {
            "kind": "reading" if kind["class"] == UNREAD else "measurement",
            "interface": interface, "share": share, "tunnel_interfaces": ends,
            **{key: kind[key] for key in ("class", "family", "port", "longest_bytes", "layer", "inner_mtu")},
        }  # fmt: skip


def text(kind: Json) -> str:
    """What it is, in a clause."""
    name = f"Tailscale ({NAMES['wireguard']})" if _is_tailscale(kind) else NAMES[kind["class"]]
    if _is_rdma(kind):
        return f"{kind['share']:.0%} RDMA (RoCEv2), whose packets are as long as its path MTU (framegauge wire --rdma)"
    port = "" if kind["port"] is None else f" on UDP port {kind['port']}"
    clause = f"{kind['share']:.0%} {name}{port.replace(' UDP', '') if kind['class'] == 'datagram' else port}"
    if kind["inner_mtu"] is None:
        return clause
    outer, inner = kind["longest_bytes"], kind["inner_mtu"]
    over = f" over IPv{kind['family']}" if kind["family"] else ""
    clause += f", which fits {kind['layer']}{over}: outer {outer} = inner {inner} + {outer - inner}"
    if kind["tunnel_interfaces"]:
        clause += f", the MTU of {' and '.join(kind['tunnel_interfaces'])}, which ends here"
    return clause


def whose_interface(kinds: Sequence[Json]) -> str:
    """The interface that shows what is inside, in words; empty: nothing is."""
    if any(kind["class"] in TUNNELS for kind in kinds):
        return "the tunnel's own interface"
    if all(kind["class"] == "quic" or _is_rdma(kind) for kind in kinds) and kinds:
        return ""
    return "the interface of the tunnel, if it is one"


def _is_rdma(kind: Json) -> bool:
    return bool(kind["class"] == "datagram" and kind["port"] == ROCE_V2)


def _is_tailscale(kind: Json) -> bool:
    return bool(kind["class"] == "wireguard" and kind["port"] == TAILSCALE)
