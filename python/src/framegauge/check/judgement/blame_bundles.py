"""Faults between hosts that are both known to be able: a link that joins two groups, or one of several parallel ones.

A host that carries the target with any other, in both roles and by the same interface, is cleared, and so is its port.
Where two such hosts lose large packets of all flows between them, what loses them is a link that this pair takes and
others do not. If that is all pairs from one group to another, it is the link between the groups, or all of its members:
only where other pairs from group to group pass is it one of several. Switches choose a link of a bundle by a hash, of
ports too (layer 3+4: then only some flows of a pair would be bad) or of addresses alone (layer 2 or 2+3; Linux
bonding's default is layer 2), and routers choose one of several equal paths in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Interface, Pair
from framegauge.check.judgement.findings import Command, Finding

__all__ = ["bundles"]

_Role = tuple[str, str | None, str, int]
_Sides = tuple[set[str], set[str]]


def bundles(case: Case) -> None:
    """Faults between cleared hosts: one finding for each size and IP version."""
    able = _able(case)
    groups: dict[tuple[int | None, int], list[Pair]] = defaultdict(list)
    for pair in case.open.values():
        if not pair.is_partial and not pair.is_one_ended and set(_roles(case, pair)) <= able:
            groups[pair.path_mtu, pair.family].append(pair)
    for (limit, family), pairs in sorted(groups.items(), key=lambda item: (item[0][0] or -1, item[0][1])):
        sides = _sides(pairs)
        others = _comparable(case, pairs, sides, family)
        if sides is not None and not others:
            _whole(case, limit, pairs, sides)
        else:
            _member(case, limit, pairs, sides, len(others))


def _cleared(case: Case, hosts: set[str]) -> str:
    return (
        f"{remedies.sentence(remedies.host_names(hosts))} and their ports are cleared: each sends and receives "
        f"{case.mesh.target} bytes with other hosts of this check, by the same interface."
    )


def _whole(case: Case, limit: int | None, pairs: list[Pair], sides: _Sides) -> None:
    """Nothing passes from group to group: that is no sign of a bundle, and no address decides."""
    hosts = sides[0] | sides[1]
    lost, cleared = remedies.sizes_text(limit), _cleared(case, hosts)
    crossed = {pair.source in sides[0] for pair in pairs}
    source, destination = sides if crossed != {False} else (sides[1], sides[0])
    ends = f"{remedies.host_names(source)}, and {remedies.host_names(destination)}"
    place = f"on the link between the two groups {ends}"
    way = "in both directions" if len(crossed) > 1 else "from the first to the second"
    why = (
        f"{remedies.count_of(len(pairs), 'pair')} lose them, and no pair that crosses it that way carries "
        f"{case.mesh.target}: it is one link, or all members of a bundle, or a device that all of them pass."
    )
    near = all(len(set(case.ways(pair))) == 1 for pair in pairs)
    show = Command("ip -d link show", "switches and bridges between the groups that run Linux", "look for a small port")
    keys = [pair.key for pair in pairs]
    case.add(
        Finding.about(
            "switch_or_nic_too_small" if near else "black_hole", f"{place.removeprefix('on ')}, {way}", [], keys,
            f"{remedies.sentence(lost)} on all flows. {why} {cleared}",
            f"{remedies.sentence(lost)} {place}, {way}. {why} {cleared} {remedies.STALLS}",
            commands=(show,), advice=f"Both ends of that link need an MTU of {case.mesh.target}.",
            ask=remedies.ask_link(f"that joins {ends}", case.mesh.target), place=place,
        ),
        keys,
    )  # fmt: skip


def _member(case: Case, limit: int | None, pairs: list[Pair], sides: _Sides | None, others: int) -> None:
    """`member_too_small`: other pairs from group to group pass."""
    hosts = {name for pair in pairs for name in (pair.source, pair.destination)}
    lost, cleared = remedies.sizes_text(limit), _cleared(case, hosts)
    between = "" if sides is None else f" between {remedies.listing(sides[0])} and {remedies.listing(sides[1])}"
    place = f"on one of several parallel links or paths{between}, chosen by addresses"
    share = remedies.share_text(len(pairs), len(pairs) + others)
    chance = (
        "All flows of a pair share its fate, so the link is chosen by addresses alone (layer 2 or 2+3, Linux "
        "bonding's default), not by ports: the number of flows says nothing about members that no pair has met."
    )
    keys = [pair.key for pair in pairs]
    show = Command("ip -d link show type bond; grep -H . /proc/net/bonding/*", "hosts and switches with a bundle")
    case.add(
        Finding.about(
            "member_too_small", place.removeprefix("on "), [], keys,
            f"{remedies.sentence(lost)} on all flows of {share} of the pairs that may share the bundle: "
            f"{remedies.pairs_text(pairs)}. {cleared} {chance}",
            f"{remedies.sentence(lost)} {place}. {cleared} {chance} {remedies.STALLS}",
            commands=(show,), advice=f"Every member of a bundle needs an MTU of {case.mesh.target}.",
            ask=f"Which bundles (LAG) or equal-cost paths join the switches of {remedies.host_names(hosts)}, and "
            f"what is the MTU of each member at both ends? All must carry IP packets of {case.mesh.target} bytes.",
            place=place,
        ),
        keys,
    )  # fmt: skip


def _role(name: str, interface: Interface | None, role: str, family: int) -> _Role:
    return name, None if interface is None else interface.name, role, family


def _roles(case: Case, pair: Pair) -> tuple[_Role, _Role]:
    return (
        _role(pair.source, case.mesh.sender(pair), "sending", pair.family),
        _role(pair.destination, case.mesh.receiver(pair), "receiving", pair.family),
    )


def _able(case: Case) -> set[_Role]:
    """Ends that carry the target with some other host, in that role."""
    good = [pair for pair in case.mesh.pairs if pair.verdict == "carries_target" and not pair.is_one_ended]
    return {role for pair in good for role in _roles(case, pair)}


def _sides(bad: Iterable[Pair]) -> _Sides | None:
    """The two groups with faults between them and none within; None unless there is one way alone to part the hosts."""
    joined: dict[str, set[str]] = defaultdict(set)
    for pair in bad:
        joined[pair.source].add(pair.destination)
        joined[pair.destination].add(pair.source)
    first = min(joined)
    side = {first: 0}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        for other in joined[name]:
            if other not in side:
                side[other] = 1 - side[name]
                waiting.append(other)
            elif side[other] == side[name]:
                return None
    if len(side) < len(joined):
        return None
    return {name for name in side if side[name] == 0}, {name for name in side if side[name] == 1}


def _comparable(case: Case, bad: Iterable[Pair], sides: _Sides | None, family: int) -> list[Pair]:
    """Pairs that may take another member of the same bundle, in a direction that loses packets, and carry the
    target."""
    losing_pairs = list(bad)
    ways = {case.ways(pair) for pair in losing_pairs}
    able = [
        pair for pair in case.mesh.pairs
        if pair.verdict == "carries_target" and pair.family == family and case.ways(pair) in ways
    ]  # fmt: skip
    if sides is None:
        return able
    both, known = len({pair.source in sides[0] for pair in losing_pairs}) > 1, sides[0] | sides[1]
    losing = sides if losing_pairs[0].source in sides[0] else (sides[1], sides[0])

    def crosses(pair: Pair) -> bool:
        # On which side a host is that loses nothing nobody knows.
        if both or not {pair.source, pair.destination} <= known:
            return (pair.source in sides[0]) != (pair.destination in sides[0])
        return pair.source in losing[0] and pair.destination in losing[1]

    return [pair for pair in able if crosses(pair)]
