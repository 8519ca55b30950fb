"""Faults between hosts that are both known to be able: one of several parallel links, chosen by addresses.

A host that carries the target with any other, in both roles and by the same interface, is cleared, and so is its port.
Where two such hosts lose large packets of all flows between them, what loses them is a link that this pair takes and
others do not. Switches choose a link of a bundle by a hash, of ports too (layer 3+4: then only some flows of a pair
would be bad) or of addresses alone (layer 2 or 2+3; Linux bonding's default is layer 2), and routers choose one of
several equal paths in the same way.
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


def bundles(case: Case) -> None:
    """`member_too_small` between cleared hosts: one finding for each size and IP version."""
    able = _able(case)
    groups: dict[tuple[int | None, int], list[Pair]] = defaultdict(list)
    for pair in case.open.values():
        if not pair.is_partial and not pair.is_one_ended and set(_roles(case, pair)) <= able:
            groups[pair.path_mtu, pair.family].append(pair)
    for (limit, family), pairs in sorted(groups.items(), key=lambda item: (item[0][0] or -1, item[0][1])):
        hosts = {name for pair in pairs for name in (pair.source, pair.destination)}
        lost = remedies.sizes_text(limit)
        sides = _sides(pairs)
        between = "" if sides is None else f" between {remedies.listing(sides[0])} and {remedies.listing(sides[1])}"
        place = f"on one of several parallel links or paths{between}, chosen by addresses"
        share = remedies.share_text(len(pairs), len(pairs) + len(_comparable(case, pairs, sides, family)))
        cleared = (
            f"{remedies.sentence(remedies.host_names(hosts))} and their ports are cleared: each sends and receives "
            f"{case.mesh.target} bytes with other hosts of this check, by the same interface."
        )
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


def _sides(bad: Iterable[Pair]) -> tuple[set[str], set[str]] | None:
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


def _comparable(case: Case, bad: Iterable[Pair], sides: tuple[set[str], set[str]] | None, family: int) -> list[Pair]:
    """Pairs that may take another member of the same bundle, and carry the target."""
    ways = {case.ways(pair) for pair in bad}
    able = [
        pair for pair in case.mesh.pairs
        if pair.verdict == "carries_target" and pair.family == family and case.ways(pair) in ways
    ]  # fmt: skip
    if sides is None:
        return able
    return [pair for pair in able if (pair.source in sides[0]) != (pair.destination in sides[0])]
