"""The path of a finding as nodes and links, with the bad link marked: what a drawing of it may show.

Only measurements count. A hop that did not answer is unknown. A link has a size only if a packet of that size is known
to have crossed it: in this direction, or (marked as such) in the other one, where traces of both directions meet at
the far end of the bad link. Where the link is not located, every link of the stretch that it must be in is marked.

    a ──9000── 10.1.0.254 ──✗ 1500── 10.9.0.2 ──9000←── b
               the last hop that     the first that
               receives large ones   receives only small ones
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Hop, Pair, Trace
from framegauge.check.judgement.findings import CATALOGUE, Finding, Key
from framegauge.check.judgement.hops import Node, Segment, last_arrival
from framegauge.check.judgement.links import are_neighbours

__all__ = ["drawn"]

_NOT_DRAWN = ("unreachable", "neighbour_table_full", "nic_maximum_too_small")
MOST_HOPS = 32  # a trace has 24; more is no trace


@dataclass(frozen=True)
class _Place:
    """A host, a router, hops that did not answer (None: how many?), or what no trace shows.

    That is the switches of a subnet ("network") and what a tunnel runs over ("underlay").
    """

    kind: str
    name: str = "?"
    hops: int | None = 1


@dataclass(frozen=True)
class _Link:
    carries: int | None = None
    bad: bool = False
    is_reverse: bool = False  # measured in the other direction


@dataclass(frozen=True)
class _Path:
    pair: Pair
    places: tuple[_Place, ...]
    links: tuple[_Link, ...]
    is_located: bool

    @property
    def unknown(self) -> int:
        """How much of it is not known."""
        return sum(place.kind == "unknown" for place in self.places) + sum(link.carries is None for link in self.links)


def drawn(case: Case, parts: Sequence[Finding]) -> dict[str, Any] | None:
    """The path of a finding of a fault, in the direction of one of its pairs; None where there is none to draw."""
    if not CATALOGUE[parts[0].kind].is_fault or parts[0].kind in _NOT_DRAWN:
        return None
    paths_by_key: dict[Key, _Path] = {}
    for part in parts:
        for family in sorted(part.families):
            paths_by_key |= {path.pair.key: path for path in _of(case, part, family)}
    if not paths_by_key:
        return None

    def other(path: _Path) -> _Path | None:
        """That of the other IP version, if it has the same shape."""
        source, destination, family = path.pair.key
        candidate = paths_by_key.get((source, destination, 10 - family))
        return candidate if candidate is not None and _is_same(path, candidate) else None

    path = min(
        paths_by_key.values(),
        key=lambda candidate: (
            not candidate.is_located,
            candidate.unknown + (other(candidate) is None),
            candidate.pair.key,
        ),
    )
    both = other(path)
    names = {path.pair.family: path} | ({} if both is None else {both.pair.family: both})
    keys = {key for part in parts for key in part.pairs}
    return _document(path, names, keys)


def _is_same(one: _Path, other: _Path) -> bool:
    """Whether the paths of both IP versions have the same shape."""
    kinds = [[place.kind for place in path.places] for path in (one, other)]
    bad = [[link.bad for link in path.links] for path in (one, other)]
    return kinds[0] == kinds[1] and bad[0] == bad[1]


def _document(path: _Path, names: dict[int, _Path], keys: set[Key]) -> dict[str, Any]:
    pair = path.pair
    nodes = []
    for index, place in enumerate(path.places):
        known = {f"ipv{family}": entry.places[index].name for family, entry in sorted(names.items())}
        if place.kind not in ("router", "network"):
            known = {}
        nodes.append({"kind": place.kind, "name": place.name, "hops": place.hops, "addresses": known})
    links = [
        {"carries_bytes": entry.carries, "bad": entry.bad, "direction": "back" if entry.is_reverse else "out"}
        for entry in path.links
    ]  # fmt: skip
    most = pair.carried if pair.is_partial else None
    return {
        "source": pair.source, "destination": pair.destination, "family": pair.family, "located": path.is_located,
        "both_directions": (pair.destination, pair.source, pair.family) in keys, "nodes": nodes, "links": links,
        "pairs": len(keys), "other_flows_carry_bytes": most if most and most > (pair.path_mtu or 0) else None,
    }  # fmt: skip


def _of(case: Case, part: Finding, family: int) -> list[_Path]:
    """The path of each pair whose trace shows the place of the finding; else what the finding alone tells."""
    pairs = [case.mesh.by_key[key] for key in part.pairs if key[2] == family and case.mesh.by_key[key].is_fault]
    traced_paths = []
    for pair in pairs:
        traced = [path for trace in _traces(pair) if (path := _traced(case, part, pair, trace))]
        if traced:
            traced_paths.append(min(traced, key=lambda candidate: (not candidate.is_located, candidate.unknown)))
    return traced_paths or [_untraced(case, part, pair) for pair in pairs[:1]]


def _traces(pair: Pair) -> Iterator[Trace]:
    for trace in pair.traces:
        if (trace.bad or not pair.is_partial) and trace.hops and trace.hops[-1].ttl <= MOST_HOPS:
            yield trace


def _traced(case: Case, part: Finding, pair: Pair, trace: Trace) -> _Path | None:
    """The path along one trace; None if the trace does not show the place of the finding."""
    hops = {hop.ttl: hop for hop in trace.hops}
    end = min((hop.ttl for hop in trace.hops if "delivered" in (hop.small, hop.large)), default=None)
    places = [_Place("host", pair.source)]
    for ttl in range(1, (end or trace.hops[-1].ttl + 1)):
        places.append(_router(hops.get(ttl)))
    if end is None:
        places.append(_Place("unknown", hops=None))
    places.append(_Place("host", pair.destination))
    if len(places) == 2:  # no router: the switches between two neighbours are not seen
        return _untraced(case, part, pair)
    arrival = last_arrival(trace)
    arrived = 0 if arrival < 0 else min(trace.hops[arrival].ttl, len(places) - 1)
    stretch = _stretch(case, part, pair, places, arrived)
    if stretch is None:
        return None
    start, stop, is_located = stretch
    link = _same_link(case, part.spot, pair) if isinstance(part.spot, Segment) else None
    if link is not None and not link.after.is_host:
        places[start] = _Place("router", link.after.name)  # the name that the finding calls it by
    limit = pair.path_mtu
    links = []
    for index in range(len(places) - 1):
        is_bad = start <= index < stop
        links.append(_Link(limit if is_bad else case.mesh.target if index < arrived else None, is_bad))
    if end is not None:
        links = _from_behind(case, pair, places, links, stop)
    return _shortened(_Path(pair, tuple(places), tuple(links), is_located))


def _router(hop: Hop | None) -> _Place:
    return _Place("unknown") if hop is None or hop.address is None else _Place("router", hop.address)


def _stretch(
    case: Case, part: Finding, pair: Pair, places: Sequence[_Place], arrived: int
) -> tuple[int, int, bool] | None:
    """Between which nodes the bad link is, and whether that is one link."""
    spot, last = part.spot, len(places) - 1
    if spot is None:
        return arrived if arrived < last else 0, last, False
    if isinstance(spot, Segment):
        link = _same_link(case, spot, pair)
        if link is None:
            return None
        stop = last if link.before.is_host else _index(places, link.before.name)
        start = stop - link.hidden - 1
        if stop < 1 or start < 0 or arrived > start or (start == 0) != link.after.is_host:
            return None
        return start, stop, link.hidden == 0
    if not spot.is_host:
        start = _index(places, spot.name)
        return None if start < 0 or start == last else (start, start + 1, places[start + 1].hops is not None)
    return (0, 1, True) if spot.name == pair.source else (last - 1, last, True)


def _same_link(case: Case, spot: Segment, pair: Pair) -> Segment | None:
    """The link as this pair crosses it: in the direction of the finding's spot, or in the other one."""
    return next((segment for segment in sorted(case.segments.get(pair.key, ())) if segment.ends == spot.ends), None)


def _index(places: Sequence[_Place], name: str) -> int:
    """Where a router is; -1 if it is not there, or twice."""
    indexes = [index for index, place in enumerate(places) if (place.kind, place.name) == ("router", name)]
    return indexes[0] if len(indexes) == 1 else -1


def _from_behind(case: Case, pair: Pair, places: Sequence[_Place], links: list[_Link], stop: int) -> list[_Link]:
    """What the other direction has measured of the links behind the bad one.

    A trace of it is of the same path if it comes, as far from the other end, to the address beside the one of the
    node behind the bad link: the two ends of that link.
    """
    back = case.mesh.by_key.get((pair.destination, pair.source, pair.family))
    behind = len(places) - 1 - stop
    if back is None or behind < 1 or places[stop].kind != "router":
        return links
    for trace in back.traces:
        hops = {hop.ttl: hop for hop in trace.hops}
        beside = hops.get(behind + 1)
        if beside is None or beside.address is None or not are_neighbours(beside.address, places[stop].name):
            continue
        known = list(links)
        for ttl in range(1, behind + 1):
            index = len(links) - ttl
            if any(hop.large in ("expired", "delivered") and hop.ttl >= ttl for hop in trace.hops):
                known[index] = replace(known[index], carries=case.mesh.target, is_reverse=True)
        return known
    return links


def _between(case: Case, pair: Pair) -> _Place:
    """What lies between two nodes without a trace: a tunnel's underlay, the switches of a subnet, or unknown hops."""
    interface = case.mesh.sender(pair)
    if interface is not None and interface.overhead is not None:
        return _Place("underlay", interface.name)
    ways = case.ways(pair)
    return _Place("network", ways[0]) if ways[0] == ways[1] else _Place("unknown", hops=None)


def _shortened(path: _Path) -> _Path:
    """Runs of hops that did not answer as one node."""
    places, links = [path.places[0]], []
    for place, link in zip(path.places[1:], path.links, strict=True):
        if place.kind == places[-1].kind == "unknown":
            both = places[-1].hops, place.hops
            places[-1] = _Place("unknown", hops=None if None in both else sum(hops or 0 for hops in both))
        else:
            places.append(place)
            links.append(link)
    return replace(path, places=tuple(places), links=tuple(links))


def _untraced(case: Case, part: Finding, pair: Pair) -> _Path:
    """What is known without a trace: the ends, and the place that the finding names."""
    source, destination = _Place("host", pair.source), _Place("host", pair.destination)
    unknown, spot = _Place("unknown", hops=None), part.spot
    bad, good = _Link(pair.path_mtu, True), _Link()
    if isinstance(spot, Segment):
        start = [source] if spot.after.is_host else [source, unknown, _Place("router", spot.after.name)]
        hidden = [_Place("unknown", hops=spot.hidden)] if spot.hidden else []
        stop = [destination] if spot.before.is_host else [_Place("router", spot.before.name), unknown, destination]
        links = [good] * (len(start) - 1) + [bad] * (1 + len(hidden)) + [good] * (len(stop) - 1)
        return _Path(pair, (*start, *hidden, *stop), tuple(links), not hidden)
    if isinstance(spot, Node) and not spot.is_host:
        places = (source, unknown, _Place("router", spot.name), unknown, destination)
        return _Path(pair, places, (good, good, bad, good), True)
    middle = _between(case, pair)
    if isinstance(spot, Node):
        is_source = spot.name == pair.source
        other = _Link(case.mesh.target if _is_able(case, pair, receiving=is_source) else None)
        return _Path(pair, (source, middle, destination), (bad, other) if is_source else (other, bad), True)
    return _Path(pair, (source, middle, destination), (bad, bad), False)


def _is_able(case: Case, pair: Pair, receiving: bool) -> bool:
    """Whether the pair's other end carries the target with others, by the same interface in the same role."""
    interface = case.mesh.receiver(pair) if receiving else case.mesh.sender(pair)
    if interface is None:
        return False
    for other in case.mesh.pairs:
        if other.family != pair.family or other.verdict != "carries_target":
            continue
        if receiving and other.destination == pair.destination and case.mesh.receiver(other) == interface:
            return True
        if not receiving and other.source == pair.source and case.mesh.sender(other) == interface:
            return True
    return False
