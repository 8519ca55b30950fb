"""By which input ports hosts reach the last switch before a receiver, and which of their flows are the few there.

Shortest paths count, whatever paths the routing chose in a run: so the few are the same flows in every arm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["FEW", "MANY", "MID", "Entrance", "Group", "entrances", "groups"]

FEW, MID, MANY = "few", "mid", "many"

Link = tuple[str, str, str]  # from, to, port


@dataclass(frozen=True)
class Entrance:
    """The input ports of the last switch on all shortest paths from a host, and the number of links of these paths."""

    ports: frozenset[str]
    hops: int


@dataclass(frozen=True)
class Group:
    """Senders whose flows belong together; `name` is FEW for the fewest flows, MANY for the most, else MID."""

    name: str
    senders: Sequence[str]
    flows: int


def entrances(links: Iterable[Link], hosts: Collection[str], receiver: str) -> dict[str, Entrance]:
    """The entrance of every other host, as far as the receiver can be reached from it; by first NICs alone.

    The ends of links are nodes, or their NICs: h1.2 is the second of h1. Hosts forward nothing.
    """
    ends = frozenset(hosts)
    joined = [(_node(source, ends), _node(target, ends), port) for source, target, port in links]
    last_switch = next((source for source, target, _ in joined if target == receiver), None)
    predecessors: dict[str, list[tuple[str, str]]] = {}
    for source, target, port in joined:
        if source is not None and target is not None:
            predecessors.setdefault(target, []).append((source, port))
    if last_switch is None:
        return {}
    distance, ports = {last_switch: 0}, {last_switch: frozenset[str]()}
    pending = deque([last_switch])
    while pending:
        node = pending.popleft()
        for source, port in predecessors.get(node, ()) if node not in ends else ():
            if source not in distance:
                distance[source], ports[source] = distance[node] + 1, frozenset()
                pending.append(source)
            if distance[source] == distance[node] + 1:
                ports[source] |= {port} if node == last_switch else ports[node]
    return {
        host: Entrance(ports[host], distance[host] + 1) for host in hosts if host in distance and host != receiver
    }  # fmt: skip


def _node(end: str, hosts: Collection[str]) -> str | None:
    """The node of an end; None for a host's NIC other than the first. Names on a rack contain no dot."""
    name, _, nic = end.partition(".")
    return None if name in hosts and nic not in ("", "1") else name


def groups(flows: Mapping[str, int], found: Mapping[str, Entrance]) -> list[Group]:
    """The few, those between, and the many, of senders with these numbers of flows to one receiver.

    Flows belong together that come by the same input port. Where there are several ports to choose among, those with
    the same choice and equally long paths do; if that is true of all senders, those of the same host do. Groups with
    the fewest flows are the few, those with the most the many. Empty if all have equally many, or an entrance is
    unknown.
    """
    if not set(flows) <= set(found):
        return []
    together = _together({host: found[host] for host in flows})
    counts = {key: sum(flows[host] for host in hosts) for key, hosts in together.items()}
    least, most = min(counts.values()), max(counts.values())
    if least == most:
        return []
    by_name: dict[str, list[tuple[object, ...]]] = {FEW: [], MID: [], MANY: []}
    for key, count in counts.items():
        by_name[FEW if count == least else MANY if count == most else MID].append(key)
    return [
        Group(name, [host for key in keys for host in together[key]], sum(counts[key] for key in keys))
        for name, keys in by_name.items()
        if keys
    ]


def _together(by_host: Mapping[str, Entrance]) -> dict[tuple[object, ...], list[str]]:
    """The senders that belong together, by what they have in common."""
    is_mixed = len({(entrance.ports, entrance.hops) for entrance in by_host.values()}) > 1
    result: dict[tuple[object, ...], list[str]] = {}
    for host, entrance in by_host.items():
        key: tuple[object, ...] = (entrance.ports,)
        if len(entrance.ports) > 1:
            key = (entrance.ports, entrance.hops) if is_mixed else (host,)
        result.setdefault(key, []).append(host)
    return result
