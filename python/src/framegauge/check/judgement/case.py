"""What is known so far while causes are being found: which faults are still open, and where traces lost them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from framegauge.check.judgement.document import Filter, Mesh, Pair, Trace
from framegauge.check.judgement.findings import Finding, Key
from framegauge.check.judgement.hops import Node, Segment, last_arrival, locate, passages
from framegauge.check.judgement.lengths import places, rule_text
from framegauge.check.judgement.links import Links

__all__ = ["SPARE_BYTES", "Case", "counted", "hint_of"]

# So many traces that agree outweigh one that allows their place as well.
AGREEING = 3
# A device may take in a little more than its MTU: room for a VLAN tag, or for the whole header and FCS.
SPARE_BYTES = 22
FAR_AHEAD = 10  # times as many traces name one link as another, which has its name from silence alone then


class Case:
    """Findings and open faults. A fault is closed by the finding that explains it, and so is a pair that is
    unreachable."""

    def __init__(self, mesh: Mesh) -> None:
        links = Links(mesh)
        self.mesh = mesh = links.completed(mesh)
        self.findings: list[Finding] = []
        # Subnets of which every interface has the same small MTU, and the hosts that a finding names for it.
        self.networks: list[tuple[frozenset[str], int, set[str]]] = []
        # Reports of routers, by address and size, that are of the small network of a destination which a finding names.
        self.led: set[tuple[str, int, Key]] = set()
        self.faults = {pair.key: pair for pair in mesh.pairs if pair.is_fault}
        self.open = dict(self.faults)
        self.unreachable = {pair.key: pair for pair in mesh.pairs if pair.verdict == "unreachable"}
        # What large packets have passed, and where a fault's flows were lost; empty where traces do not say.
        passed = [(pair, links.named(segment)) for pair in mesh.pairs for segment in passages(pair)]
        self.passed = {segment for _, segment in passed}
        self.segments = _places(mesh, links, self.faults.values(), passed)

    def add(self, finding: Finding, closes: Iterable[Key] = ()) -> None:
        """A finding, and the faults that need no other explanation."""
        self.findings.append(finding)
        for key in closes:
            self.open.pop(key, None)
            self.unreachable.pop(key, None)

    def filters(self, pair: Pair) -> tuple[Filter, ...]:
        """The rules of its sender that keep every "packet too big" from it."""
        rules = self.mesh.host(pair.source).filters
        return tuple(rule for rule in rules if rule.certain and rule.ip_version == pair.family)

    def ways(self, pair: Pair) -> tuple[str, str]:
        """The subnets that the pair joins."""
        return (
            self.mesh.group(pair.source, pair.source_address),
            self.mesh.group(pair.destination, pair.destination_address),
        )

    def alike(self, known: Iterable[Pair], everywhere: bool = False) -> list[Pair]:
        """Open faults that no trace has placed, with the symptoms of known ones, which share one cause.

        Between the same subnets; or, if all known ones share one subnet as their source (or destination), of that
        subnet; or, if they share none, between any of theirs. `everywhere`: between any subnets at all.
        """
        known_pairs = list(known)
        if not known_pairs:
            return []
        ways = {self.ways(pair) for pair in known_pairs}
        symptoms = {(pair.path_mtu, pair.is_partial, pair.family) for pair in known_pairs}
        sources, destinations = ({way[end] for way in ways} for end in (0, 1))
        shared = set.intersection(*(set(way) for way in ways))

        def belongs(way: tuple[str, str]) -> bool:
            if way in ways or (everywhere and way[0] != way[1]):
                return True
            if way[0] == way[1] or len(ways) < 2 or len(shared) > 1:
                return False
            if shared:
                return (way[0] in shared & sources) or (way[1] in shared & destinations)
            return way[0] in sources and way[1] in destinations

        return [
            pair for key, pair in self.open.items()
            if not self.segments[key] and (pair.path_mtu, pair.is_partial, pair.family) in symptoms
            and belongs(self.ways(pair))
        ]  # fmt: skip

    def remarks(self, pairs: Iterable[Pair], limit: int | None) -> list[str]:
        """What else is known of faults: the other direction, the other family, the sizes."""
        faults, by_key = list(pairs), self.mesh.by_key
        lines = []

        def carries(key: Callable[[Pair], Key]) -> bool:
            others = [by_key.get(key(pair)) for pair in faults]
            return all(other is not None and other.verdict == "carries_target" for other in others)

        if faults and carries(lambda pair: (pair.destination, pair.source, pair.family)):
            lines.append(f"The other direction carries {self.mesh.target}.")
        if faults and carries(lambda pair: (pair.source, pair.destination, 10 - pair.family)):
            other = {4: 6, 6: 4}[faults[0].family]
            if len({pair.family for pair in faults}) == 1:
                lines.append(f"IPv{other} between the same hosts carries {self.mesh.target}.")
        if limit is not None and 0 <= limit < 1280 and any(pair.family == 6 for pair in faults):
            lines.append(f"{limit} is below 1280, the smallest MTU that IPv6 allows (RFC 8200, section 5).")
        doubtful = {
            pair.source for pair in faults for rule in self.mesh.host(pair.source).filters
            if pair.verdict == "black_hole" and rule.ip_version == pair.family and not rule.certain
        }  # fmt: skip
        if doubtful:
            names = " and ".join(sorted(doubtful))
            lines.append(f"Rules of {names} may drop ICMP errors: whether a router reported it is not known.")
        hint = hint_of(limit, self.mesh.target)
        if hint:
            lines.append(f"{limit} is typical of {hint}.")
        return lines

    def rules_by_length(self, pairs: Iterable[Pair]) -> list[str]:
        """Rules that may drop what these pairs lose: not all of their conditions are known."""
        rules = {
            f"A rule may drop some packets above {spot.rule.above} bytes ({rule_text(spot.rule)} on host {spot.host})."
            for pair in pairs if pair.verdict == "black_hole" for spot in places(self.mesh, pair)
        }  # fmt: skip
        return sorted(rules)


_Link = tuple[object, ...]


def _link(mesh: Mesh, pair: Pair, segment: Segment) -> _Link:
    """A router's way to the hosts of one subnet is one link, whichever host a trace was for."""
    ends: list[object] = [segment.after, segment.before]
    for end, node in enumerate((segment.after, segment.before)):
        if node.is_host and segment.host is not None:
            address = pair.destination_address if end else pair.source_address
            ends[end] = mesh.group(node.name, address)
    return (segment.hidden, *ends)


def _ends(mesh: Mesh, pair: Pair, segment: Segment) -> tuple[int, frozenset[object]]:
    """The same for both directions of a link."""
    return segment.hidden, frozenset(_link(mesh, pair, segment)[1:])


def _is_certain(pair: Pair, trace: Trace, place: Segment) -> bool:
    """Whether the trace's large packets are known to have come as far as the place: its router answered one, or it is
    the host's own link. Else routers that have answered enough look the same."""
    return last_arrival(trace) >= 0 or place.after == Node(True, pair.source)


def _places(
    mesh: Mesh, links: Links, faults: Iterable[Pair], passed: Iterable[tuple[Pair, Segment]]
) -> dict[Key, set[Segment]]:
    """Where each fault's flows were lost, as few places as explain all of them.

    A trace by itself says "behind the last hop that answered", and the likeliest place is right there. But a link that
    other large packets passed is no likely place, if the trace allows another; and where many traces agree on a
    place that another one allows, too, the other one's router was only silent.
    """
    able = {_link(mesh, pair, segment) for pair, segment in passed if not segment.hidden}
    traces: list[tuple[Pair, Trace, list[Segment]]] = []
    for pair in faults:
        for trace in pair.traces:
            if trace.bad or not pair.is_partial:
                segments = [links.named(entry) for entry in locate(pair, trace)]
                traces.append(
                    (pair, trace, [entry for entry in segments if _link(mesh, pair, entry) not in able] or segments)
                )
    first = Counter((pair.path_mtu, _link(mesh, pair, entry[0])) for pair, _, entry in traces if entry)
    # Silence alone names no place: some trace must.
    named = [(pair, entry[0]) for pair, trace, entry in traces if entry and _is_certain(pair, trace, entry[0])]
    certain = {segment.ends for _, segment in named}
    # Nor does it for a host whose neighbour loses the same sizes behind the same router.
    beside = {(pair.path_mtu, _ends(mesh, pair, segment)) for pair, segment in named}

    def votes(pair: Pair, segment: Segment) -> int:
        return first[pair.path_mtu, _link(mesh, pair, segment)]

    agreed: dict[tuple[int | None, int, bool], set[Segment]] = defaultdict(set)
    for pair, _, entry in traces:
        if entry and links.is_known(entry[0]):
            agreed[pair.path_mtu, pair.family, pair.is_partial].add(entry[0])
    # How many traces a known link explains: those that name it, and those whose silent hops allow it.
    explained = Counter(
        (pair.path_mtu, pair.is_partial, known)
        for pair, trace, entry in traces
        for known in agreed[pair.path_mtu, pair.family, pair.is_partial]
        if entry and (entry[0] == known or links.may_lose(pair, trace, known))
    )
    places: dict[Key, set[Segment]] = defaultdict(set)
    for pair, trace, entry in traces:
        if not entry:
            continue
        best = max(entry, key=lambda segment: votes(pair, segment))
        place = best if votes(pair, best) >= AGREEING * votes(pair, entry[0]) else entry[0]
        # Hops that kept silent may hide the link that the others name; that is no other place, only a vaguer one.
        alike = agreed[pair.path_mtu, pair.family, pair.is_partial]
        needed = AGREEING * (1 if place.hidden else votes(pair, place))
        among = [known for known in alike if explained[pair.path_mtu, pair.is_partial, known] >= needed]
        among = [known for known in among if links.may_lose(pair, trace, known)]
        among.sort(key=lambda known: (-votes(pair, known), known))
        among = [known for known in among if votes(pair, known) * FAR_AHEAD > votes(pair, among[0])]
        is_one = len({known.ends for known in among}) == 1  # both directions of a link are one
        place = among[0] if is_one else place
        if place.ends in certain or (pair.path_mtu, _ends(mesh, pair, place)) in beside:
            places[pair.key].add(place)
    return places


def hint_of(limit: int | None, target: int = 0) -> str | None:
    """What a size is typical of; None if nothing."""
    return HINTS[limit] if limit in HINTS else counted(limit, target)


def counted(limit: int | None, target: int) -> str | None:
    """What a device counts in its MTU, if a size is one that people set, or the target, less just that."""
    for whole in dict.fromkeys((target, *WHOLE)):
        if limit is not None and whole - limit in COUNTED:
            return f"{whole} less {whole - limit}: a device counts {COUNTED[whole - limit]} in its MTU"
    return None


# MTUs that people set, and what some devices count as well (IEEE 802.3, 802.1Q).
WHOLE = (1500, 9000, 9216)
COUNTED = {
    4: "a VLAN tag (4 bytes)", 14: "its header (14 bytes)", 18: "its header and FCS, or header and VLAN tag (18 bytes)",
    22: "its header, VLAN tag and FCS (22 bytes)",
}  # fmt: skip
# Hints where to look first, not evidence. docs/reference/mtu-faults.md has the sources.
HINTS: dict[int | None, str] = {
    1300: "an edge site of a cloud (AWS Outposts, Wavelength)",
    1400: "a VPN or a tunnel over 1500",
    1420: "WireGuard over 1500",
    1450: "VXLAN over 1500",
    1460: "Google Cloud's default",
    1492: "PPPoE",
    3900: "Azure within a virtual network, on ConnectX",
    8500: "an AWS Transit Gateway or peering between regions",
    8896: "Google Cloud's maximum",
    8950: "VXLAN over 9000",
    9001: "an AWS VPC",
}
