"""What a packet meets on its way through a lab, worked out from the description alone: a second opinion on `truth`.

It walks the plan's next hops cable by cable. Where several are equal, it takes every one: each has the same share of flows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from framegauge.labs.model import Network
from framegauge.labs.plan import Interface, Plan

SPARE_BYTES = 4  # what the kernel's virtual links and bridges take beyond their MTU: room for a VLAN tag
VXLAN_BYTES = {4: 50, 6: 70}


@dataclass(frozen=True)
class Step:
    """Over one cable: out of a node by an interface, into the next by another."""

    node: str
    out: Interface
    other: str
    into: Interface


@dataclass(frozen=True)
class Fate:
    """Of packets on one way: the largest that arrives, as configured too, and whether somebody says so of larger ones."""

    path_mtu: int
    configured: int
    told: bool


def across(plan: Plan, source: str, destination: str, segment: int) -> list[Step]:
    """From one node of a segment to another through its switches, by breadth."""
    waiting, seen = deque([[source]]), {source}
    while waiting:
        path = waiting.popleft()
        if path[-1] == destination:
            return [_step(plan, node, other, segment) for node, other in pairwise(path)]
        if path[-1] != source and plan.network.nodes[path[-1]].kind != "switch":
            continue
        for each in plan.interfaces[path[-1]]:
            if each.segment == segment and each.to not in seen:
                seen.add(each.to)
                waiting.append([*path, each.to])
    raise AssertionError(f"no way from {source} to {destination} on segment {segment}")


def _step(plan: Plan, node: str, other: str, segment: int) -> Step:
    out = next(each for each in plan.interfaces[node] if each.to == other and each.segment == segment)
    return Step(node, out, other, next(each for each in plan.interfaces[other] if each.link == out.link))


def ways(plan: Plan, node: str, destination: str, segment: int, family: int) -> list[tuple[float, list[Step]]]:
    """Every way from a node to a host's interface on a segment, with its share of the flows."""
    hops = plan.hops(node, segment, family)
    if not hops:
        return [(1.0, across(plan, node, destination, segment))]
    found = []
    for hop in hops:
        own = next(each for each in plan.interfaces[node] if each.name == hop.interface)
        first = across(plan, node, hop.router, own.segment)
        rests = ways(plan, hop.router, destination, segment, family)
        found += [(share / len(hops), [*first, *rest]) for share, rest in rests]
    return found


def fate(network: Network, way: list[Step], family: int, target: int) -> Fate:
    """What becomes of packets up to the target on one way."""
    largest, configured, told = target, target, False
    for step in way:
        assert step.out.link is not None
        switch = network.nodes[step.node].kind == "switch"
        own = step.out.mtu + SPARE_BYTES * switch
        if own < largest:  # a switch does not say that a packet is too large
            largest, told = own, not switch and not blocks(network, step.node, family)
        link, host = network.links[step.out.link], network.nodes[step.other].kind == "host"
        limit = None if host else link.limit_at(step.other)
        taken = min(limit or largest, step.into.mtu + SPARE_BYTES)
        if taken < largest:
            largest, told = taken, False
        configured = min(configured, step.out.mtu, step.into.mtu, limit or configured)
    return Fate(largest, configured, told)


def blocks(network: Network, node: str, family: int) -> bool:
    """Whether a router keeps to itself that a packet was too large."""
    return any(each.icmp == "too_big" and each.family in (None, family) for each in network.nodes[node].blocks)


def expected(plan: Plan, source: str, destination: str, family: int, target: int) -> tuple[str, int, int, float]:
    """Verdict, path MTU, configured MTU and bad share; all bad ways of a lab have one fate."""
    overlay = next((each.overlay for each in plan.interfaces[source] if each.overlay is not None), None)
    below = family if overlay is None else plan.network.overlays[overlay].underlay
    overhead = 0 if overlay is None else VXLAN_BYTES[below]
    end = next(each for each in plan.interfaces[destination] if each.link is not None and below in each.addresses)
    fates = [
        (share, fate(plan.network, way, below, target + overhead))
        for share, way in ways(plan, source, destination, end.segment, below)
    ]
    bad = {each for _, each in fates if each.path_mtu < target + overhead}
    if not bad:
        return "carries_target", target, target, 0.0
    assert len(bad) == 1, bad
    one = bad.pop()
    verdict = "too_small" if one.told else "black_hole"
    share = sum(share for share, each in fates if each == one)
    return verdict, one.path_mtu - overhead, one.configured - overhead, share
