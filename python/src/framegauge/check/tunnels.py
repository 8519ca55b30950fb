"""What a check proves of a tunnel: for each peer, whether packets of the inner MTU pass through it. Pure.

The inner MTU is arithmetic (`frames.wire`): what encapsulations leave of the MTU of their underlay. Whether a peer has
it packets tell, since each peer has an underlay of its own: a tunnel that is sized for IPv4 cuts or loses packets to a
peer behind IPv6. Whether packets were encapsulated at all, the interface tells that they leave by, if it is a tunnel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Encapsulated", "lines", "of_document"]

Json = dict[str, Any]
# Kinds of interfaces that encapsulate, beside those of which `check.facts` knows the overhead.
KINDS = ("wireguard", "tun", "xfrm", "vti", "vti6", "ovpn", "ppp", "l2tp_eth")


@dataclass(frozen=True)
class Encapsulated:
    """Layers from the outermost to the innermost, as `framegauge wire` reads them, the MTU around and that inside."""

    layers: tuple[str, ...]
    underlay_mtu: int
    inner_mtu: int

    @property
    def overhead_bytes(self) -> int:
        """What they take."""
        return self.underlay_mtu - self.inner_mtu


def of_document(document: Mapping[str, Any], asked: Encapsulated) -> Json:
    """The key `encapsulation` of a check's document: what was to pass, and each peer."""
    interfaces = {
        (host["name"], interface["name"]): interface
        for host in document["hosts"]
        for interface in (host["facts"] or {"interfaces": ()})["interfaces"]
    }
    return {
        "layers": list(asked.layers),
        "underlay_mtu": asked.underlay_mtu,
        "inner_mtu": asked.inner_mtu,
        "peers": [_peer(pair, interfaces.get((pair["source"], pair["interface"]))) for pair in document["pairs"]],
    }


def _peer(pair: Mapping[str, Any], interface: Mapping[str, Any] | None) -> Json:
    known = interface or {}
    overhead = known.get("overhead_bytes")
    return {
        "source": pair["source"], "destination": pair["destination"], "family": pair["family"],
        "interface": pair["interface"], "kind": known.get("kind"), "mtu": known.get("mtu"), "overhead_bytes": overhead,
        "is_tunnel": interface is not None and (overhead is not None or known.get("kind") in KINDS),
        "verdict": pair["verdict"], "path_mtu_bytes": pair["path_mtu_bytes"],
    }  # fmt: skip


def lines(told: Mapping[str, Any]) -> Iterator[str]:
    """What is inside, and each peer in a line."""
    layers, inner, taken = told["layers"], told["inner_mtu"], told["underlay_mtu"] - told["inner_mtu"]
    yield f"Inside of {','.join(layers)}: an underlay of {told['underlay_mtu']} leaves {inner} (overhead {taken})"
    for peer in told["peers"]:
        yield f"{peer['source']} → {peer['destination']} (IPv{peer['family']}): {_proved(peer, inner)}"
        yield from (f"   {line}" for line in _doubts(peer, inner, taken, layers))


def _proved(peer: Mapping[str, Any], inner: int) -> str:
    by = f" through {peer['interface']}" if peer["is_tunnel"] else ""
    if peer["verdict"] == "carries_target":
        return f"{inner} proved{by}"
    size = peer["path_mtu_bytes"]
    most = "" if size is None else f", {size} at most" if peer["verdict"] in ("too_small", "black_hole") else ""
    return f"{inner} not proved{by}: {peer['verdict'].replace('_', ' ')}{most}"


def _doubts(peer: Mapping[str, Any], inner: int, taken: int, layers: Sequence[str]) -> Iterator[str]:
    if not peer["is_tunnel"]:
        by = (
            f"they leave by {peer['interface']}, which is no tunnel"
            if peer["interface"]
            else "nothing tells the interface"
        )
        yield f"{by}: whether these packets were encapsulated is not known (name HOST%IFACE, the tunnel's)"
        return
    overhead = peer["overhead_bytes"]
    if overhead is not None and overhead != taken and not any("," in layer for layer in layers):
        yield f"{peer['interface']} takes {overhead} by its attributes, not the {taken} of {','.join(layers)}"
    if peer["mtu"] is not None and peer["mtu"] < inner:
        yield f"{peer['interface']} itself has an MTU of {peer['mtu']}: it takes no more, whatever the underlay carries"
