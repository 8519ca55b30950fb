"""The input port of the last switch by which a sender's frames came, from the topology and from recorded frames."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from framegauge.results.spools import dig

__all__ = ["inputs", "ports_to"]


def ports_to(record: Mapping[str, Any], host: str) -> list[str]:
    """The switch ports whose links lead to a host, one per NIC; none if the testbed is the kernel's own link."""
    named = [link["port"] for link in _links(record) if _node(link["to"]) == host]
    # Records of older versions lack the network; their ports are named by both ends.
    all_ports = [port["port"] for port in dig(record, "measure", "fabric", "ports") or ()]
    return named or [port for port in all_ports if port.endswith(f">{host}")]


def inputs(
    record: Mapping[str, Any], receiver: str, senders: Collection[str], dropped: Collection[str]
) -> dict[str, str | None]:
    """The input port at the receiver's switch by which each sender's frames came (several, if there are several paths).

    `dropped`: the input ports of frames that were dropped there. A sender whose input port is unknown has None.
    """
    ports = ports_to(record, receiver)
    waits = dig(record, "measure", "fabric", "waits") or ()
    seen_ports = {wait["input_port"] for wait in waits if wait["port"] in ports} | set(dropped)
    links = _links(record)
    return {sender: _input(sender, receiver, links, seen_ports, senders) for sender in senders}


def _node(end: str) -> str:
    """The node that an end of a link belongs to: h1.2 is the second NIC of h1. Names on a rack contain no dot."""
    return end.partition(".")[0]


def _links(record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    ports = dig(record, "rack", "network", "ports")
    return [link for link in ports if "from" in link] if isinstance(ports, list) else ()


def _input(
    sender: str, receiver: str, links: Sequence[Mapping[str, Any]], seen_ports: set[str], senders: Collection[str]
) -> str | None:
    """The input port of one sender. Recorded frames take precedence over shortest paths: routing may choose others."""
    shortest = set(_last_links(sender, receiver, links))
    if candidates := shortest & seen_ports if seen_ports else shortest:
        return " or ".join(sorted(candidates))
    own = {port for port in seen_ports if _node(port.partition(">")[0]) == sender}
    others = {port for port in seen_ports if _node(port.partition(">")[0]) not in senders}
    candidates = own or others
    return candidates.pop() if len(candidates) == 1 else None


def _last_links(sender: str, receiver: str, links: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The links that enter the receiver's switch on shortest paths from the sender."""
    edges = [(_node(link["from"]), _node(link["to"]), link["port"]) for link in links]
    hops, reached = {sender: 0}, [sender]
    for node in reached:  # grows during the loop
        for source, target, _ in edges:
            if source == node and target not in hops:
                hops[target] = hops[node] + 1
                reached.append(target)
    last = {source for source, target, _ in edges if target == receiver}
    for source, target, port in edges:
        if target in last and source in hops and hops[source] + 1 == hops.get(target):
            yield port
