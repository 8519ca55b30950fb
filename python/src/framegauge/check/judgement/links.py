"""Which two addresses are the ends of one link, learned from traces of both directions.

A router answers from the interface that a packet came in by. So one router has many names: one as the first hop of
each of its hosts, and one for each neighbour that it hears from; and one bad link looks like many. The far end b of a
link has one name, though. Its near end is the address next to b (in one /30 or /31, /126 or /127) that packets to the
same hosts come in by, as far from them as b is on the way out. Both are required: routers that answer from loopback
addresses have neighbours by number, too, but those are not where the way back passes.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from framegauge.check.judgement.document import Hop, Mesh, Pair, Trace
from framegauge.check.judgement.hops import Node, Segment, last_arrival

__all__ = ["Links", "are_neighbours"]

_Seen = dict[tuple[str, int], set[str]]


class Links:
    """What the traces of a document say about links; nothing, where only one direction was traced."""

    def __init__(self, mesh: Mesh) -> None:
        # What answers so many hops behind a host, and so many before it.
        self._behind: _Seen = defaultdict(set)
        self._before: _Seen = defaultdict(set)
        following: dict[str, set[str]] = defaultdict(set)
        steps: dict[tuple[str, str], set[tuple[str, int]]] = defaultdict(set)
        for pair in mesh.pairs:
            for trace in pair.traces:
                for ttl, address, left in _answers(trace):
                    self._behind[pair.source, ttl].add(address)
                    if left is not None:
                        self._before[pair.destination, left].add(address)
                for near, far, ttl in _steps(trace):
                    following[near].add(far)
                    steps[near, far].add((pair.source, ttl))
        self._near: dict[tuple[str, str], str] = {}
        self._ends: set[tuple[str, str]] = set()
        for far, nears in _preceding(steps).items():
            # A router that has one name from both sides needs no other.
            if not following[far] & set(nears):
                self._learn(far, nears)
        behind_one: dict[tuple[str, int], set[str]] = defaultdict(set)
        for step, end in self._near.items():
            for source, ttl in steps[step]:
                behind_one[end, ttl].add(source)
        self._range = sorted({distance for seen in (self._behind, self._before) for _, distance in seen})
        self._known_distances: dict[tuple[int, str, str], set[int]] = {}
        # Hosts behind one router, as far from it, have the same ways.
        self._kin: dict[str, set[str]] = defaultdict(set)
        for sources in behind_one.values():
            for source in sources:
                self._kin[source] |= sources

    def _learn(self, far: str, nears: Mapping[str, set[tuple[str, int]]]) -> None:
        """The near end of a link, for the names that its router has where packets come in that leave by the link."""
        back = {near: {address for at in seen for address in self._before.get((at[0], at[1] - 1), ())}
                for near, seen in nears.items()}  # fmt: skip
        ends = {address for names in back.values() for address in names if are_neighbours(address, far)}
        if len(ends) != 1:
            return
        end = ends.pop()
        # Returns to the hosts of one router come in by the same few interfaces.
        shared = {address for names in back.values() if end in names for address in names}
        known = {near for near, names in back.items() if names}
        own = {near for near in known if back[near] & shared}
        # Two addresses have room for one neighbour: if all of which something is known are one, so are the others.
        self._near |= {(near, far): end for near in (own if own < known else back)}
        self._ends.add((end, far))

    def is_known(self, segment: Segment) -> bool:
        """Whether both addresses of the segment are known to be the ends of one link."""
        return (segment.after.name, segment.before.name) in self._ends and segment.is_between_routers

    def named(self, segment: Segment) -> Segment:
        """With the address that the nearer router has on this very link, where it is known."""
        near = self._near.get((segment.after.name, segment.before.name))
        if near is None or segment.hidden or not segment.is_between_routers:
            return segment
        return Segment(Node(False, near), segment.before)

    def completed(self, mesh: Mesh) -> Mesh:
        """The document, with hops named that kept silent once: those that the next hop has a known link with, and first
        hops of a host that has one router only."""
        pairs = [
            replace(pair, traces=tuple(self._completed(pair, trace) for trace in pair.traces)) for pair in mesh.pairs
        ]  # fmt: skip
        return replace(mesh, pairs=tuple(pairs))

    def _completed(self, pair: Pair, trace: Trace) -> Trace:
        hops = list(trace.hops)
        if hops and hops[0].ttl == 1 and (hops[0].small, hops[0].large) == ("silent", "silent"):
            routers = [
                router for router in self._behind.get((pair.source, 1), ()) if (":" in router) == (pair.family == 6)
            ]
            if len(routers) == 1:
                hops[0] = replace(hops[0], small="expired", small_address=routers[0])
        for index in range(len(hops) - 1, 0, -1):
            hop, far = hops[index - 1], hops[index].address
            if (hop.small, hop.large) != ("silent", "silent") or far is None or hops[index].ttl != hop.ttl + 1:
                continue
            candidates = [
                router for router in self._behind.get((pair.source, hop.ttl), ()) if (router, far) in self._near
            ]
            if len(candidates) == 1:
                hops[index - 1] = replace(hop, small="expired", small_address=candidates[0])
        return replace(trace, hops=tuple(hops))

    def may_lose(self, pair: Pair, trace: Trace, segment: Segment) -> bool:
        """Whether a flow of silent hops may have crossed a known link and been lost there.

        Others from there cross the link at a hop of which this trace says nothing else, others to its destination do so
        as far from the end, and no large packet is known to have come through.
        """
        far, length, arrived = segment.before.name, _length(trace), last_arrival(trace)
        if not self.is_known(segment):
            return False
        lefts = self._distances(self._before, pair.destination, far)
        hops = {hop.ttl: (index > arrived, hop.address) for index, hop in enumerate(trace.hops)}
        # A trace that does not reach the end says nothing of what lies behind its last answer.
        beyond = (length is None, None)
        for ttl in self._distances(self._behind, pair.source, far):
            is_open, address = hops.get(ttl, beyond)
            if is_open and address in (None, far) and (lefts if length is None else length - ttl in lefts):
                return True
        return False

    def _distances(self, seen: _Seen, host: str, address: str) -> set[int]:
        """How far from the host, or from one behind the same router, this answers."""
        key = id(seen), host, address
        if key not in self._known_distances:
            hosts = self._kin.get(host, {host})
            self._known_distances[key] = {
                distance
                for distance in self._range
                if any(address in seen.get((neighbour, distance), ()) for neighbour in hosts)
            }
        return self._known_distances[key]


def _length(trace: Trace) -> int | None:
    """The TTL with which packets reach the destination; None if none did."""
    return min((hop.ttl for hop in trace.hops if "delivered" in (hop.small, hop.large)), default=None)


def _router(hop: Hop) -> str | None:
    return None if "delivered" in (hop.small, hop.large) else hop.address


def _answers(trace: Trace) -> Iterator[tuple[int, str, int | None]]:
    """TTL, address, and how many hops are left to the destination."""
    length = _length(trace)
    for hop in trace.hops:
        address = _router(hop)
        if address is not None:
            yield hop.ttl, address, None if length is None else length - hop.ttl


def _steps(trace: Trace) -> Iterator[tuple[str, str, int]]:
    """Two routers that follow one another, and the TTL of the farther."""
    for index, hop in enumerate(trace.hops[1:], 1):
        near, far = _router(trace.hops[index - 1]), _router(hop)
        if near is not None and far is not None and hop.ttl == trace.hops[index - 1].ttl + 1:
            yield near, far, hop.ttl


def _preceding(steps: Mapping[tuple[str, str], set[tuple[str, int]]]) -> dict[str, dict[str, set[tuple[str, int]]]]:
    """By router, those that precede it, and as which hop of which source it was seen there."""
    preceding: dict[str, dict[str, set[tuple[str, int]]]] = defaultdict(dict)
    for (near, far), seen in steps.items():
        preceding[far][near] = seen
    return preceding


@cache
def are_neighbours(one: str, other: str) -> bool:
    """Whether two addresses can be all that a link has (RFC 3021, RFC 6164, or the four of a /30)."""
    try:
        first, second = ipaddress.ip_address(one), ipaddress.ip_address(other)
    except ValueError:
        return False
    low, high = sorted((int(first), int(second)))
    if first.version != second.version or high - low != 1:
        return False
    return low % 2 == 0 or low % 4 == 1
