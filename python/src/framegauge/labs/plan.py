"""The interfaces, addresses and static routes along shortest paths that follow from a lab's network.

A segment is a set of links joined by switches, or one link between hosts and routers. Segment n has 10.78.n.0/24 and
fd78:0:0:n::/64; hosts are numbered from 1 up, routers from 254 down, with the same number in both families.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from framegauge.labs.model import Network, families_of, segments

__all__ = ["Hop", "Interface", "Plan", "plan", "prefix"]

ROUTERS_FROM = 254


@dataclass(frozen=True)
class Interface:
    """An interface of a node: where it leads (a node, or `overlay`), and its addresses by family; none for a switch."""

    name: str
    to: str
    mtu: int
    index: int
    segment: int
    addresses: dict[int, str] = field(default_factory=dict)
    link: int | None = None
    overlay: int | None = None


@dataclass(frozen=True)
class Hop:
    """A next hop: the interface, and the router behind it."""

    interface: str
    router: str
    address: str


def prefix(segment: int, family: int) -> str:
    """The network of a segment."""
    return f"10.78.{segment}.0/24" if family == 4 else f"fd78:0:0:{segment:x}::/64"


def _address(segment: int, number: int, family: int) -> str:
    return f"10.78.{segment}.{number}" if family == 4 else f"fd78:0:0:{segment:x}::{number:x}"


class Plan:
    """The interfaces of every node, and the distances between nodes."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.interfaces: dict[str, list[Interface]] = {name: [] for name in network.nodes}
        self.families: dict[int, tuple[int, ...]] = {}
        self._members: dict[int, list[tuple[str, Interface]]] = {}
        for segment, links in enumerate(segments(network), 1):
            self.families[segment] = families_of(network.links[links[0]].family)
            self._join(segment, links)
        for number, overlay in enumerate(network.overlays):
            segment = len(self.families) + 1
            self.families[segment] = families_of(None)
            for place, end in enumerate(overlay.ends, 1):
                found = {family: _address(segment, place, family) for family in self.families[segment]}
                # The ends of links have the numbers from 10 on, so overlays come after them.
                index = 10 + 2 * len(network.links) + number
                self._add(end, Interface("vxlan0", "overlay", overlay.mtu, index, segment, found, overlay=number))
        for each in self.interfaces.values():
            each.sort(key=lambda interface: interface.index)
        self._distances = {
            (segment, family): self._distance(segment, family)
            for segment, families in self.families.items()
            for family in families
        }

    def _join(self, segment: int, links: list[int]) -> None:
        host, router = 0, ROUTERS_FROM + 1
        for number in links:
            link = self.network.links[number]
            for place, end in enumerate(link.ends):
                kind, addresses = self.network.nodes[end].kind, {}
                if kind != "switch":
                    host, router = (host + 1, router) if kind == "host" else (host, router - 1)
                    own = host if kind == "host" else router
                    addresses = {family: _address(segment, own, family) for family in self.families[segment]}
                other = link.ends[1 - place]
                before = sum(1 for each in self.interfaces[end] if each.to == other)
                name = f"to-{other}" + (f"-{before + 1}" if before else "")
                # If both interfaces had the same index, each in its own namespace, the kernel would wait a second
                # before it notices that their link is up (linkwatch_urgent_event).
                index = 10 + 2 * number + place
                mtu = link.mtu_at(end, self.network.mtu)
                self._add(end, Interface(name, other, mtu, index, segment, addresses, link=number))

    def _add(self, node: str, interface: Interface) -> None:
        self.interfaces[node].append(interface)
        self._members.setdefault(interface.segment, []).append((node, interface))

    def _distance(self, segment: int, family: int) -> dict[str, int]:
        """The number of routers between each node and a segment."""
        found = {node: 0 for node, interface in self._members[segment] if family in interface.addresses}
        last = list(found)
        while last:
            reached = []
            for router in last:
                if self.network.nodes[router].kind != "router":
                    continue
                for own in self.interfaces[router]:
                    for node, other in self._members[own.segment]:
                        if family in own.addresses and family in other.addresses and node not in found:
                            found[node] = found[router] + 1
                            reached.append(node)
            last = reached
        return found

    def address(self, node: str, family: int) -> str | None:
        """The address at which others reach a host: in its overlay if it has one, else on its first link."""
        found = [each for each in self.interfaces[node] if family in each.addresses]
        return min(found, key=lambda each: each.overlay is None).addresses[family] if found else None

    def hops(self, node: str, segment: int, family: int) -> list[Hop]:
        """The next hops from a node to another segment, over all shortest paths; none if there is no path."""
        away = self._distances.get((segment, family), {})
        if away.get(node, 0) == 0:
            return []
        return [
            Hop(own.name, other_node, other.addresses[family])
            for own in self.interfaces[node]
            for other_node, other in self._members[own.segment]
            if other_node != node
            and family in own.addresses
            and family in other.addresses
            and self.network.nodes[other_node].kind == "router"
            and away.get(other_node) == away[node] - 1
        ]

    def routes(self, node: str) -> Iterator[tuple[str, list[Hop]]]:
        """The prefix and next hops of every route that a node needs."""
        for segment, families in self.families.items():
            for family in families:
                if found := self.hops(node, segment, family):
                    yield prefix(segment, family), found

    def way(self, node: str, host: str, family: int) -> tuple[str, list[Hop], Interface] | None:
        """The way to a host: its address, the next hops (none on the same segment), and the interface that has it."""
        address = self.address(host, family)
        if address is None:
            return None
        there = next(each for each in self.interfaces[host] if each.addresses.get(family) == address)
        hops = self.hops(node, there.segment, family)
        on_it = any(each.segment == there.segment and family in each.addresses for each in self.interfaces[node])
        return (address, hops, there) if hops or on_it else None


def plan(network: Network) -> Plan:
    """The plan of a network."""
    return Plan(network)
