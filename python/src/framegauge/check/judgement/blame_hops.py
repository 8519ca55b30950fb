"""Faults that traces place on a link: between two routers, at a host's port, or on one of several parallel paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import SPARE_BYTES, Case
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import Command, Finding
from framegauge.check.judgement.hops import Node, Segment, hidden_text, only_bad

__all__ = ["between_routers", "branches", "ports"]

# So many bad links of one router are more likely the router's own fault than that many faults. Across hops that
# never answer two are enough: they may as well be one link.
SHARED_LINKS = 3
_Links = dict[Segment, list[Pair]]
_Side = tuple[Node, list[str], list[Pair]]  # of a subnet: a router beside it, hosts, and their pairs


def between_routers(case: Case) -> None:
    """`router_drops_silently` and `member_too_small`: links none of whose ends is a host that was checked."""
    for partial in (False, True):
        links: _Links = defaultdict(list)
        for key, pair in case.open.items():
            for segment in case.segments[key]:
                if segment.is_between_routers and pair.is_partial == partial:
                    links[segment].append(pair)
        for node, group in _switches(case, links, partial):
            _report(case, group, partial, node)
        # Both directions of a link, and both families, are one cause: they share its ends.
        joined: dict[tuple[Node, Node], _Links] = defaultdict(dict)
        for segment, pairs in links.items():
            joined[segment.ends][segment] = pairs
        for _, link_group in sorted(joined.items()):
            _report(case, link_group, partial, None)


def _switches(case: Case, links: _Links, partial: bool) -> Iterable[tuple[Node, _Links]]:
    """Takes links out that share one router, of which nothing large is known to pass in their direction."""
    while True:
        # Ways across hops that never answer are apart from the others: they may share such a hop.
        near: dict[tuple[Node, str, int], _Links] = defaultdict(dict)
        for segment, pairs in links.items():
            near[segment.before, "into", segment.hidden][segment] = pairs
            near[segment.after, "out of", segment.hidden][segment] = pairs
        best: tuple[int, Node, _Links] | None = None
        for (node, way, hidden), node_links in sorted(near.items(), key=lambda item: item[0]):
            others = {segment.after if way == "into" else segment.before for segment in node_links}
            passed = any((passage.after if way == "out of" else passage.before) == node and passage.hidden == hidden
                         for passage in case.passed)  # fmt: skip
            # Good flows across another hop that never answers look the same, and say nothing of this one.
            passed = passed and not (partial and hidden)
            if (
                len(others) >= (2 if hidden else SHARED_LINKS)
                and not passed
                and (best is None or len(others) > best[0])
            ):
                both = dict(node_links)
                other = near.get((node, "out of" if way == "into" else "into", hidden), {})
                both.update(other if not any(node in link.ends for link in case.passed) else {})
                best = (len(others), node, both)
        if best is None:
            return
        for segment in best[2]:
            del links[segment]
        yield best[1], best[2]


def _report(case: Case, links: Mapping[Segment, list[Pair]], partial: bool, node: Node | None) -> None:
    pairs = list({pair.key: pair for link_pairs in links.values() for pair in link_pairs}.values())
    if not any(pair.key in case.open for pair in pairs):
        return  # explained since by another of its links
    more = case.alike(pairs, everywhere=node is not None and len(links) > 3)  # a switch that many links share
    everything = [*pairs, *more]
    limit = _limit(pairs)
    where, place = _where(case, links, node), _place(case, links, node)
    lost = remedies.sizes_text(limit)
    evidence = [f"Traces of {remedies.count_of(len(pairs), 'pair')} agree: {lost} {where}."]
    if more:
        evidence.append(f"{remedies.count_of(len(more), 'pair')} of these subnets without a trace lose the same sizes.")
    evidence.append(_share(pairs) if partial else _silent(links))
    joined = "Large packets of other flows pass between the same two routers: more than one link joins them."
    is_joined = any(link in case.passed for link in links)
    evidence += [joined] if is_joined else []
    evidence += case.remarks(everything, limit)
    owners = {case.mesh.owners[end.name] for link in links for end in (link.after, link.before)
              if end.name in case.mesh.owners}  # fmt: skip
    first = min(links)
    summary = [f"{remedies.sentence(lost)} {_lead(links, node)}{place}."]
    summary += [PARTLY, joined] if partial and is_joined else [PARTLY] if partial else [TWO_CAUSES, remedies.STALLS]
    commands = remedies.raise_link(case.mesh, first.after, first.before, case.mesh.target)
    if not partial:
        commands += remedies.allow_too_big(pairs[0].family)
    keys = [pair.key for pair in everything]
    case.add(
        Finding.about(
            "member_too_small" if partial else "router_drops_silently", where, owners, keys, " ".join(evidence),
            " ".join(summary), commands=commands, place=place, spot=first,
            ask=remedies.ask_link(where if node is not None else first.text(case.mesh), case.mesh.target),
        ),
        keys,
    )  # fmt: skip


def _where(case: Case, links: Mapping[Segment, list[Pair]], node: Node | None) -> str:
    if node is not None:
        others = {end.name for link in links for end in (link.after, link.before) if end != node}
        if hidden := max(link.hidden for link in links):
            return f"between {node.text(case.mesh)} and {remedies.listing(others)}{hidden_text(hidden)}"
        return f"at {node.text(case.mesh)} (its links with {remedies.listing(others)})"
    first = min(links)
    return first.text(case.mesh) + (", both directions" if _is_both_ways(links) else f", towards {first.before.name}")


def _place(case: Case, links: Mapping[Segment, list[Pair]], node: Node | None) -> str:
    """The same within a sentence, after `_lead`."""
    if node is not None:
        return _where(case, links, node)
    first, joint = min(links), " and " if _is_both_ways(links) else " to router "
    return f"{first.after.name}{joint}{first.before.name}{hidden_text(first.hidden)}"


def _lead(links: Mapping[Segment, list[Pair]], node: Node | None) -> str:
    """How a sentence comes to the place."""
    return "" if node is not None else "in both directions between routers " if _is_both_ways(links) else "from router "


def _is_both_ways(links: Iterable[Segment]) -> bool:
    return len({(link.after, link.before) for link in links}) > 1


def _silent(links: Mapping[Segment, list[Pair]]) -> str:
    """What a silent routed link can be, and what it cannot."""
    answers = "; ".join(
        f"{link.after.name} answers large packets whose TTL ends there, {link.before.name} answers small ones only"
        for link in sorted(links)[:2]
    )
    return f"{answers}. {TWO_CAUSES}"


UNHEARD = (
    "may have the smaller MTU on that link as well, if ICMP errors are filtered: that looks the same from outside."
)
TWO_CAUSES = (
    "No ICMP error was received. There are two possible causes, which look the same from outside: the nearer router "
    "has a smaller MTU on that link and its ICMP errors are filtered, or the far side (or a switch in between) does "
    "not accept large frames."
)
PARTLY = (
    "Only some flows use the bad path: some TCP connections between the same hosts stall while others work, "
    "depending on their port numbers."
)


def _share(pairs: Iterable[Pair]) -> str:
    affected = list(pairs)
    bad, probed = sum(pair.bad for pair in affected), sum(pair.probed - pair.unknown for pair in affected)
    return f"Only some flows are affected, {remedies.share_text(bad, probed)}: the others take another path."


def _limit(pairs: Iterable[Pair]) -> int | None:
    """The size that most of the pairs share; None if none of them knows."""
    sizes = [pair.path_mtu for pair in pairs if pair.path_mtu is not None]
    return max(sorted(set(sizes)), key=sizes.count, default=None)


def ports(case: Case) -> None:
    """A router on one side, hosts on the other: the host's port, or the router's interface if it hits all of them."""
    edges: dict[tuple[str, str], dict[Node, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for key, pair in case.open.items():
        for segment in case.segments[key]:
            if segment.host is not None:
                router = segment.before if segment.after.is_host else segment.after
                edges[segment.host][router].append(pair)
    shared: dict[tuple[Node, str], list[str]] = defaultdict(list)
    for (host, direction), routers in edges.items():
        for router in routers:
            shared[router, direction].append(host)
    _subnet_ports(case, edges, shared)
    own: dict[str, list[dict[str, dict[Node, list[Pair]]]]] = defaultdict(list)
    for (host, direction), routers in sorted(edges.items()):
        left = {
            node: [pair for pair in losing_pairs if pair.key in case.open] for node, losing_pairs in routers.items()
        }
        if not any(left.values()):
            continue
        other = next((ways for ways in own[host] if _is_same_port(ways, left)), None)
        if other is None:
            own[host].append({direction: left})
        else:
            other[direction] = left
    for host, ports in own.items():
        for ways in ports:
            _host_port(case, host, ways)


def _is_same_port(ways: Mapping[str, Mapping[Node, list[Pair]]], left: Mapping[Node, list[Pair]]) -> bool:
    """Whether what one direction loses has the cause of the other's: the same size, but for what a device takes in
    beyond its MTU."""
    one = [pair for routers in ways.values() for losing_pairs in routers.values() for pair in losing_pairs]
    other = [pair for losing_pairs in left.values() for pair in losing_pairs]
    return _have_same_size(one, other)


def _have_same_size(one: list[Pair], other: list[Pair]) -> bool:
    """Whether two directions lose the same sizes, but for what a device takes in beyond its MTU, and as partially."""
    sizes = _limit(one), _limit(other)
    are_partial = any(pair.is_partial for pair in one), any(pair.is_partial for pair in other)
    if None in sizes:
        return sizes[0] == sizes[1] and are_partial[0] == are_partial[1]
    return abs((sizes[0] or 0) - (sizes[1] or 0)) <= SPARE_BYTES and are_partial[0] == are_partial[1]


def _subnet_ports(
    case: Case,
    edges: Mapping[tuple[str, str], Mapping[Node, list[Pair]]],
    shared: Mapping[tuple[Node, str], list[str]],
) -> None:
    """A router's interface, where several hosts beside it lose packets; both directions are one cause."""
    subnets: list[dict[str, _Side]] = []
    for (router, direction), hosts in sorted(shared.items()):
        pairs = [pair for host in sorted(hosts) for pair in edges[host, direction][router] if pair.key in case.open]
        if not pairs or len(hosts) < 2:
            continue
        other = next((ways for ways in subnets if _is_same_subnet(case, ways, direction, pairs)), None)
        if other is None:
            subnets.append({direction: (router, hosts, pairs)})
        else:
            other[direction] = router, hosts, pairs
    for ways in subnets:
        _subnet_port(case, ways)


def _end(direction: str) -> int:
    """Where the hosts are in the ends of their pairs."""
    return 1 if direction == "receiving" else 0


def _is_same_subnet(case: Case, ways: Mapping[str, _Side], direction: str, pairs: list[Pair]) -> bool:
    """Whether what one direction loses has the cause of the other's: the same size between the same subnets. A router
    has a name for each direction."""
    if direction in ways:
        return False
    ((_, _, others),) = ways.values()
    there, back = {case.ways(pair) for pair in others}, {case.ways(pair)[::-1] for pair in pairs}
    return there == back and _have_same_size(others, pairs)


def _subnet_port(case: Case, ways: Mapping[str, _Side]) -> None:
    """`ways`: by direction of the hosts, the router beside them, their names, and the pairs that lose packets."""
    (router, _, one), *others = ways.values()
    end, hosts = _end(next(iter(ways))), {host for _, names, _ in ways.values() for host in names}
    pairs = [*one, *(pair for _, _, other in others for pair in other)]
    subnets = remedies.listing({case.ways(pair)[end] for pair in one})
    limit, partial = _limit(pairs), any(pair.is_partial for pair in pairs)
    names = {node.name for node, _, _ in ways.values()}
    routers = router.text(case.mesh) if len(names) == 1 else f"routers {remedies.listing(names)}"
    place = f"between {routers} and {subnets}{_hidden(case, pairs)}"
    towards = "towards the hosts and from them" if others else f"{'towards' if end else 'from'} the hosts"
    where = f"{place}, {towards}"
    everything = [*pairs, *case.alike(pairs)]
    lost = remedies.sizes_text(limit)
    shared = f"{remedies.count_of(len(hosts), 'host')} are affected, so the cause is a link that they share."
    evidence = [f"Traces of {remedies.count_of(len(pairs), 'pair')} agree: {lost} {where}. {shared}"]
    evidence += [_share(pairs)] if partial else []
    evidence += case.remarks(everything, limit)
    peer = one[0].destination_address if end else one[0].source_address
    case.add(
        Finding.about(
            "member_too_small" if partial else "router_drops_silently", where, [],
            [pair.key for pair in everything], " ".join(evidence),
            f"{remedies.sentence(lost)} {place}. {shared} {PARTLY if partial else remedies.STALLS}",
            commands=remedies.raise_router(case.mesh, router.name, case.mesh.target, peer),
            ask=remedies.ask_link(where, case.mesh.target), place=place,
            spot=_spot(case, pairs),
        ),
        [pair.key for pair in everything],
    )  # fmt: skip


def _hidden(case: Case, pairs: Iterable[Pair]) -> str:
    return hidden_text(max((segment.hidden for pair in pairs for segment in case.segments[pair.key]), default=0))


def _spot(case: Case, pairs: Iterable[Pair]) -> Segment:
    return min(segment for pair in pairs for segment in case.segments[pair.key] if segment.host is not None)


def _host_port(case: Case, host: str, ways: Mapping[str, Mapping[Node, list[Pair]]]) -> None:
    """`ways`: by direction, the routers beside the host, and the pairs that lose packets between the two."""
    parts = {way: [pair for losing_pairs in routers.values() for pair in losing_pairs] for way, routers in ways.items()}
    pairs = list({pair.key: pair for losing_pairs in parts.values() for pair in losing_pairs}.values())
    limit, partial, direction = _limit(pairs), any(pair.is_partial for pair in pairs), " and ".join(sorted(ways))
    nodes = {node.name for routers in ways.values() for node, losing_pairs in routers.items() if losing_pairs}
    names = f"router{'' if len(nodes) == 1 else 's'} {remedies.listing(nodes)}"
    place = f"between {names} and host {host}{_hidden(case, pairs)}"
    where, lost = f"{place}, {direction}", remedies.sizes_text(limit)
    evidence = [f"Traces of {remedies.count_of(len(pairs), 'pair')} agree: {lost} {where}."]
    own = [
        case.mesh.receiver(pair) if way == "receiving" else case.mesh.sender(pair)
        for way, losing_pairs in parts.items() for pair in losing_pairs
    ]  # fmt: skip
    interface = next((entry for entry in own if entry is not None), None)
    if interface is not None and limit is not None and interface.mtu > limit:
        evidence.append(f"On host {host} {remedies.interface_text(interface)}, which contradicts the measurement.")
    evidence += [_share(pairs)] if partial else []
    evidence += case.remarks(pairs, limit)
    if not partial and any(entry.hidden for pair in pairs for entry in case.segments[pair.key]):
        # A hop between the two, which nobody has heard, may as well be the one: no port of the host is to blame.
        case.add(
            Finding.about(
                "router_drops_silently", where, [], [pair.key for pair in pairs], f"{' '.join(evidence)} {TWO_CAUSES}",
                f"{remedies.sentence(lost)} {place}. {TWO_CAUSES} {remedies.STALLS}",
                commands=(*remedies.work_around(pairs, limit), *remedies.allow_too_big(pairs[0].family)),
                ask=remedies.ask_link(place, case.mesh.target), place=place, spot=_spot(case, pairs),
            ),
            [pair.key for pair in pairs],
        )  # fmt: skip
        return
    peer = pairs[0].source_address if "receiving" in ways else pairs[0].destination_address
    commands, advice = remedies.raise_or_look(case.mesh.host(host), interface, case.mesh.target, peer)
    has_room = interface is not None and interface.mtu >= case.mesh.target
    silent, look = _unheard(case, ways.get("receiving", {})) if has_room and not partial else ("", ())
    case.add(
        Finding.about(
            "member_too_small" if partial else "switch_or_nic_too_small", where, [host],
            [pair.key for pair in pairs], f"{' '.join(evidence)}{silent}",
            f"{remedies.sentence(lost)} {place} (the host is {direction}).{silent} "
            f"{PARTLY if partial else remedies.STALLS}",
            commands=(*commands, *look), advice=advice,
            ask=remedies.ask_port(f"host {host}", case.mesh.target, interface), place=place, spot=_spot(case, pairs),
        ),
        [pair.key for pair in pairs],
    )  # fmt: skip


def _unheard(case: Case, ways: Mapping[Node, Sequence[Pair]]) -> tuple[str, tuple[Command, ...]]:
    """That a router beside a host may have the smaller MTU itself, where nobody hears it (RFC 2923, section 2.1), and
    what shows that; nothing of one whose interfaces are read to be large."""
    pairs = {
        node.name: losing[0]
        for node, losing in ways.items()
        if losing and not node.is_host and not remedies.has_room(case.mesh, node.name, case.mesh.target)
    }
    if not pairs:
        return "", ()
    look = [
        command for name, pair in sorted(pairs.items())
        for command in remedies.look_at_router(case.mesh, name, pair.destination_address)
    ]  # fmt: skip
    return f" Router{'' if len(pairs) == 1 else 's'} {remedies.listing(pairs)} {UNHEARD}", tuple(look)


def branches(case: Case) -> None:
    """`member_too_small` for what is left of partial faults: by hops that only bad flows share, else unplaced."""
    groups: dict[tuple[int | None, int], list[Pair]] = defaultdict(list)
    for pair in case.open.values():
        if pair.is_partial:
            groups[pair.path_mtu, pair.family].append(pair)
    for (limit, _), pairs in sorted(groups.items(), key=lambda item: (item[0][0] or -1, item[0][1])):
        shared, between = only_bad(pairs), _between({case.ways(pair) for pair in pairs})
        place = f"on one of the parallel paths {between}"
        if shared:
            place += f", at or behind {remedies.listing(shared)}"
            seen = f"All traces of bad flows pass {remedies.listing(shared)}, and none of a good flow does."
        elif any(pair.traces for pair in pairs):
            seen = "Traces of good and bad flows show the same routers: a bundle (LAG), or hops that do not answer."
        else:
            seen = "There is no trace to locate it; a hash of addresses and ports selects the path."
        lost = remedies.sizes_text(limit)
        evidence = [f"For {remedies.count_of(len(pairs), 'pair')} {lost}.", _share(pairs), seen]
        hosts = {pairs[0].source, pairs[0].destination} if len(pairs) == 1 else set()
        show = Command("ip -d link show type bond; grep -H . /proc/net/bonding/*", "hosts with a bundle")
        case.add(
            Finding.about(
                "member_too_small", place.removeprefix("on "), hosts, [pair.key for pair in pairs],
                " ".join(evidence), f"{remedies.sentence(lost)} {place}. {PARTLY} {seen}", commands=(show,),
                advice=f"Every member of a bundle needs an MTU of {case.mesh.target}.",
                ask=f"Which members do the bundles and equal-cost paths {between} have? One of them does not carry "
                f"IP packets of {case.mesh.target} bytes; all of them must.",
                place=place,
            ),
            [pair.key for pair in pairs],
        )  # fmt: skip


def _between(ways: set[tuple[str, str]]) -> str:
    """The subnets, if there are few; what they have in common, if there are many."""
    if len(ways) == 1:
        source, destination = next(iter(ways))
        return f"within {source}" if source == destination else f"between {source} and {destination}"
    shared = set.intersection(*(set(way) for way in ways))
    if len(shared) == 1:
        others = {end for way in ways for end in way} - shared
        return f"between {shared.pop()} and {remedies.listing(others)}"
    ends = {end for way in ways for end in way}
    return f"among {remedies.listing(ends)}"
