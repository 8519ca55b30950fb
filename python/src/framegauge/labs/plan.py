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
            for position, end in enumerate(overlay.ends, 1):
                addresses = {family: _address(segment, position, family) for family in self.families[segment]}
                # The ends of links have the numbers from 10 on, so overlays come after them.
                index = 10 + 2 * len(network.links) + number
                self._add(end, Interface("vxlan0", "overlay", overlay.mtu, index, segment, addresses, overlay=number))
        for interfaces in self.interfaces.values():
            interfaces.sort(key=lambda interface: interface.index)
        self._distances = {
            (segment, family): self._distance(segment, family)
            for segment, families in self.families.items()
            for family in families
        }

    def _join(self, segment: int, links: list[int]) -> None:
        host, router = 0, ROUTERS_FROM + 1
        for number in links:
            link = self.network.links[number]
            for side, end in enumerate(link.ends):
                kind, addresses = self.network.nodes[end].kind, {}
                if kind != "switch":
                    host, router = (host + 1, router) if kind == "host" else (host, router - 1)
                    host_number = host if kind == "host" else router
                    addresses = {family: _address(segment, host_number, family) for family in self.families[segment]}
                peer = link.ends[1 - side]
                earlier = sum(1 for interface in self.interfaces[end] if interface.to == peer)
                name = f"to-{peer}" + (f"-{earlier + 1}" if earlier else "")
                # If both interfaces had the same index, each in its own namespace, the kernel would wait a second
                # before it notices that their link is up (linkwatch_urgent_event).
                index = 10 + 2 * number + side
                mtu = link.mtu_at(end, self.network.mtu)
                self._add(end, Interface(name, peer, mtu, index, segment, addresses, link=number))

    def _add(self, node: str, interface: Interface) -> None:
        self.interfaces[node].append(interface)
        self._members.setdefault(interface.segment, []).append((node, interface))

    def _distance(self, segment: int, family: int) -> dict[str, int]:
        """The number of routers between each node and a segment."""
        distances = {node: 0 for node, interface in self._members[segment] if family in interface.addresses}
        frontier = list(distances)
        while frontier:
            reached = []
            for router in frontier:
                if self.network.nodes[router].kind != "router":
                    continue
                for own_interface in self.interfaces[router]:
                    for node, neighbour in self._members[own_interface.segment]:
                        if (
                            family in own_interface.addresses
                            and family in neighbour.addresses
                            and node not in distances
                        ):
                            distances[node] = distances[router] + 1
                            reached.append(node)
            frontier = reached
        return distances

    def address(self, node: str, family: int) -> str | None:
        """The address at which others reach a host: in its overlay if it has one, else on its first link."""
        candidates = [interface for interface in self.interfaces[node] if family in interface.addresses]
        return (
            min(candidates, key=lambda interface: interface.overlay is None).addresses[family] if candidates else None
        )

    def hops(self, node: str, segment: int, family: int) -> list[Hop]:
        """The next hops from a node to another segment, over all shortest paths; none if there is no path."""
        distances = self._distances.get((segment, family), {})
        if distances.get(node, 0) == 0:
            return []
        return [
            Hop(interface.name, other_node, peer.addresses[family])
            for interface in self.interfaces[node]
            for other_node, peer in self._members[interface.segment]
            if other_node != node
            and family in interface.addresses
            and family in peer.addresses
            and self.network.nodes[other_node].kind == "router"
            and distances.get(other_node) == distances[node] - 1
        ]

    def routes(self, node: str) -> Iterator[tuple[str, list[Hop]]]:
        """The prefix and next hops of every route that a node needs."""
        for segment, families in self.families.items():
            for family in families:
                if hops := self.hops(node, segment, family):
                    yield prefix(segment, family), hops

    def way(self, node: str, host: str, family: int) -> tuple[str, list[Hop], Interface] | None:
        """The way to a host: its address, the next hops (none on the same segment), and the interface that has it."""
        address = self.address(host, family)
        if address is None:
            return None
        far_end = next(interface for interface in self.interfaces[host] if interface.addresses.get(family) == address)
        hops = self.hops(node, far_end.segment, family)
        is_local = any(
            interface.segment == far_end.segment and family in interface.addresses
            for interface in self.interfaces[node]
        )
        return (address, hops, far_end) if hops or is_local else None


def plan(network: Network) -> Plan:
    """The plan of a network."""
    return Plan(network)
