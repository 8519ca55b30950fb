"""Tunnels of which the kernel does not tell what they take: their packets grow outside, by as much as a program or
each peer decides, and no switch has their port.
"""

from __future__ import annotations

from collections.abc import Iterable

from framegauge.check.judgement.document import Interface
from framegauge.check.tunnels import KINDS

__all__ = ["advice", "ask", "clamping", "is_sealed"]

# The layer of `framegauge wire`, and where the MTU of such an interface is set.
_MADE: dict[str, tuple[str, str]] = {
    "wireguard": ("wireguard", "MTU in [Interface] of WireGuard's file, on both hosts"),
    "tun": ("openvpn", "in what made the interface (OpenVPN: tun-mtu), on both hosts"),
    "ovpn": ("openvpn", "in what made the interface (OpenVPN: tun-mtu), on both hosts"),
    "ppp": ("pppoe", "mtu and mru of pppd, on both hosts"),
    "l2tp_eth": ("l2tpv3", "where the tunnel is made, on both hosts"),
}
# OpenVPN's mssfix is on unless it is told otherwise (openvpn(8)).
_CLAMPING = ("tun", "ovpn")
_IPSEC = ("esp-tunnel", "where the IPsec interface is made, on both hosts")


def is_sealed(interface: Interface | None) -> bool:
    """Whether it is such a tunnel."""
    return interface is not None and interface.overhead is None and interface.kind in KINDS


def advice(interface: Interface, target_mtu: int) -> str:
    """What to do in place of raising it alone, after which its packets would be cut or lost outside."""
    layer, where = _MADE.get(interface.kind or "", _IPSEC)
    begins = f"Do not raise {interface.name} alone: it" if interface.mtu < target_mtu else interface.name
    return (
        f"{begins} is a tunnel ({interface.kind}), and a packet of {target_mtu} bytes "
        "in it is a larger one outside. See first what the path between the ends of the tunnel carries (framegauge "
        f"check with their outer addresses); framegauge wire --encap {layer} --mtu BYTES shows what that leaves "
        f"inside. Then set the MTU {where}."
    )


def ask(interface: Interface, target_mtu: int) -> str:
    """About the path outside."""
    return (
        f"What does the path between the ends of the tunnel {interface.name} carry? It must be more than {target_mtu} "
        "bytes, by the headers of the tunnel."
    )


def clamping(interfaces: Iterable[Interface | None]) -> str:
    """The tunnels of programs by which all of some connections go, if such a program clamps the MSS of TCP by itself;
    empty for any other."""
    tunnels = list(interfaces)
    if not all(tunnel is not None and tunnel.kind in _CLAMPING for tunnel in tunnels):
        return ""
    return " and ".join(sorted({tunnel.name for tunnel in tunnels if tunnel is not None}))
