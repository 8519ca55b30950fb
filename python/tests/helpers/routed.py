"""Hosts of two subnets behind a router, which is a namespace: each subnet has a switch that carries 9000 bytes, and the
router's own ports 1500.

A switch takes as long for each packet as for so many bytes more, so that fewer packets are faster by a known ratio.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from helpers.sshd import run

SWITCH_MTU, ROUTER_MTU = 9000, 1500
RATE, PER_PACKET_BYTES = "100mbit", 2000
ETHERNET, SEGMENT_HEADERS = 14, 52  # as the queue counts; of IPv4 and TCP with timestamps
SUBNETS = ("10.78.1", "10.78.2")


@dataclass(frozen=True)
class Routed:
    """Namespaces and addresses by host, each with `eth1` on the switch of its subnet."""

    hosts: Mapping[str, str]
    addresses: Mapping[str, str]

    def address(self, name: str) -> str:
        return self.addresses[name]

    def mtu(self, name: str) -> int:
        [link] = json.loads(run("ip", "-n", self.hosts[name], "-j", "link", "show", "eth1"))
        return int(link["mtu"])

    def packet(self, name: str, address: str) -> int:
        """The largest that a host sends to an address."""
        [route] = json.loads(run("ip", "-n", self.hosts[name], "-j", "route", "get", address))
        return int((route.get("metrics") or [{}])[0].get("mtu", self.mtu(name)))


def gain(old: int, new: int) -> float:
    """What a stream through a switch gains with larger packets, as a share."""
    shares = [(mtu - SEGMENT_HEADERS) / (mtu + ETHERNET + PER_PACKET_BYTES) for mtu in (old, new)]
    return shares[1] / shares[0] - 1


@contextlib.contextmanager
def routed(namespaces: Mapping[str, str], subnets: Sequence[Sequence[str]]) -> Iterator[Routed]:
    """Gives the hosts of each subnet their `eth1` and addresses, .1 and up, with a default route through the router,
    .254. Everything goes after."""
    tag = secrets.token_hex(2)
    router, switch = f"fgq{tag}-router", f"fgq{tag}-switch"
    addresses = {}
    with contextlib.ExitStack() as undo:
        for each in (router, switch):
            run("ip", "netns", "add", each)
            undo.callback(run, "ip", "netns", "del", each)
        run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for number, names in enumerate(subnets):
            bridge, network = f"s{number}", SUBNETS[number]
            run("ip", "-n", switch, "link", "add", bridge, "mtu", str(SWITCH_MTU), "type", "bridge")
            run("ip", "-n", switch, "link", "set", bridge, "up")
            _plug(switch, bridge, f"r{number}", router, f"eth{number}", ROUTER_MTU, f"{network}.254/24")
            for place, name in enumerate(names, 1):
                namespace, addresses[name] = namespaces[name], f"{network}.{place}"
                _plug(switch, bridge, f"p{number}.{place}", namespace, "eth1", 1500, f"{addresses[name]}/24")
                run("ip", "-n", namespace, "route", "add", "default", "via", f"{network}.254")
        yield Routed(dict(namespaces), addresses)


def _plug(switch: str, bridge: str, port: str, namespace: str, interface: str, mtu: int, address: str) -> None:
    run("ip", "-n", switch, "link", "add", port, "mtu", str(SWITCH_MTU), "type", "veth",
        "peer", "name", interface, "mtu", str(mtu), "netns", namespace)  # fmt: skip
    run("ip", "-n", switch, "link", "set", port, "master", bridge, "up")
    # Nothing may leave as an aggregate, which these links would take at any size.
    run("ip", "netns", "exec", namespace, "ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", "off")
    run("ip", "-n", namespace, "addr", "add", address, "dev", interface)
    run("ip", "-n", namespace, "link", "set", interface, "up")
    run("ip", "netns", "exec", switch, "tc", "qdisc", "add", "dev", port, "stab", "overhead", str(PER_PACKET_BYTES),
        "linklayer", "ethernet", "root", "tbf", "rate", RATE, "burst", "40kb", "limit", "20mb")  # fmt: skip
