"""An invented fleet: racks below leaves, joined by spines, with faults put in; what a check of it would have measured.

Each rack is a subnet and its leaf a router; a flow between racks takes the spine that its hash says. Links are
directed pairs of names, and a fault is a set of links that carry less. Seeded, no clock, no network: the planner and
the blame are tried on it at sizes that no lab has.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from framegauge.check.judgement import planner, verdict
from framegauge.check.judgement.findings import CATALOGUE

__all__ = ["FAULTS", "Fault", "Fleet", "draw_fault", "is_accused", "is_named", "measure"]

Link = tuple[str, str]
FAULTS = ("nic", "nic_sending", "nic_receiving", "uplink", "uplink_up", "uplink_down", "spine")
TRACED_PAIRS = 200


@dataclass(frozen=True)
class Fleet:
    """So many hosts in racks of so many; every leaf has one uplink to every spine."""

    hosts: int = 1000
    rack: int = 40
    spines: int = 4

    def members(self) -> list[planner.Member]:
        """The hosts, as a plan needs them."""
        return [planner.Member(self.name(index), (f"{self.address(index)}/24",)) for index in range(self.hosts)]

    def name(self, index: int) -> str:
        """Of a host."""
        return f"r{self.leaf(index)}h{index % self.rack}"

    def leaf(self, index: int) -> int:
        """The rack of a host."""
        return index // self.rack

    def address(self, index: int) -> str:
        """Of a host."""
        return f"10.{self.leaf(index) >> 8}.{self.leaf(index) & 255}.{index % self.rack + 1}"

    def path(self, source: int, destination: int, spine: int) -> list[str]:
        """The names on the way: hosts, and routers by the address that they answer from."""
        ends = self.leaf(source), self.leaf(destination)
        if ends[0] == ends[1]:
            return [self.name(source), f"switch {ends[0]}", self.name(destination)]
        return [self.name(source), leaf_address(ends[0]), spine_address(spine), leaf_address(ends[1]),
                self.name(destination)]  # fmt: skip


def leaf_address(leaf: int) -> str:
    """Where a leaf answers from."""
    return f"10.255.{leaf >> 8}.{leaf & 255}"


def spine_address(spine: int) -> str:
    """Where a spine answers from."""
    return f"10.254.0.{spine}"


@dataclass(frozen=True)
class Fault:
    """Links that carry `mtu` bytes and no more, silently; `culprits` are the names that a finding must give."""

    kind: str
    links: frozenset[Link]
    culprits: tuple[str, ...]
    mtu: int = 1500


def draw_fault(fleet: Fleet, kind: str, chooser: random.Random) -> Fault:
    """One of the kind, anywhere in the fleet."""
    host, spine = chooser.randrange(fleet.hosts), chooser.randrange(fleet.spines)
    leaves = range(fleet.leaf(fleet.hosts - 1) + 1)
    name, leaf, top = fleet.name(host), leaf_address(fleet.leaf(host)), spine_address(spine)
    if kind.startswith("nic"):
        before = (leaf, f"switch {fleet.leaf(host)}")
        links = [(name, each) for each in before] if kind != "nic_receiving" else []
        links += [(each, name) for each in before] if kind != "nic_sending" else []
        return Fault(kind, frozenset(links), (name,))
    if kind.startswith("uplink"):
        links = ([(leaf, top)] if kind != "uplink_down" else []) + ([(top, leaf)] if kind != "uplink_up" else [])
        return Fault(kind, frozenset(links), (leaf, top))
    ways = [way for each in leaves for way in ((leaf_address(each), top), (top, leaf_address(each)))]
    return Fault(kind, frozenset(ways), (top,))


@dataclass
class _Check:
    """What one simulated check knows of the fleet and of its own settings."""

    fleet: Fleet
    faults: Sequence[Fault]
    flows: int
    target: int
    chooser: random.Random
    silent: frozenset[str]  # routers that answer nothing
    limited: float  # the chance that a router does not answer a large packet though it came
    limits: dict[Link, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fault in self.faults:
            for link in fault.links:
                self.limits[link] = min(fault.mtu, self.limits.get(link, self.target))

    def size(self, path: Sequence[str]) -> int:
        """The path MTU along these names."""
        return min((self.limits.get(link, self.target) for link in pairwise(path)),
                   default=self.target)  # fmt: skip

    def trace(self, path: Sequence[str], port: int, destination: str, is_bad: bool) -> dict[str, Any]:
        """Small and large packets with each TTL. A switch has no TTL to answer for."""
        hops: list[dict[str, Any]] = []
        large = True
        for before, here in pairwise(path):
            large = large and self.limits.get((before, here), self.target) >= self.target
            if here.startswith("switch "):
                continue
            last = here == path[-1]
            answers = last or here not in self.silent
            seen = large and answers and (last or self.chooser.random() >= self.limited)
            outcome, address = ("delivered", destination) if last else ("expired", here)
            hops.append({
                "ttl": len(hops) + 1,
                "small": {"outcome": outcome if answers else "silent", "address": address if answers else None},
                "large": {"outcome": outcome if seen else "silent", "address": address if seen else None,
                          "mtu_bytes": None},
            })  # fmt: skip
        return {"source_port": port, "bad": is_bad, "hops": hops}


def measure(
    fleet: Fleet, plan: planner.Plan, faults: Sequence[Fault] = (), flows: int = 32, seed: int = 0,
    target_mtu: int = 9000, silent: float = 0.0, limited: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """The result document, without findings. `silent` routers never answer; answers are `limited` at random."""
    chooser = random.Random(seed)
    routers = [spine_address(each) for each in range(fleet.spines)]
    routers += [leaf_address(each) for each in range(fleet.leaf(fleet.hosts - 1) + 1)]
    quiet = frozenset(name for name in routers if chooser.random() < silent)
    check = _Check(fleet, faults, flows, target_mtu, chooser, quiet, limited)
    numbers = {fleet.name(index): index for index in range(fleet.hosts)}
    pairs = [_pair(check, numbers[source], numbers[destination], seed) for source, destination in plan.pairs]
    bad = [pair for pair in pairs if pair["verdict"] != "carries_target"]
    traced = bad if len(bad) <= TRACED_PAIRS else chooser.sample(bad, TRACED_PAIRS)
    for pair in traced:
        _add_traces(check, pair, numbers, seed)
    return {
        "schema": 1, "target_mtu": target_mtu, "verdict": verdict.of_check(pairs), "seconds": 0.0,
        "false_claim_probability": 0.0, "flows": flows, "coverage": planner.member_coverage(flows),
        "plan": plan.as_document(), "pairs": pairs, "findings": [],
        "hosts": [_host(fleet, index, target_mtu) for index in range(fleet.hosts)],
    }  # fmt: skip


def _spines(check: _Check, source: int, destination: int, seed: int) -> list[int]:
    """The spine that each flow of a pair takes."""
    hashed = random.Random(zlib.crc32(f"{seed} {source} {destination}".encode()))
    return [hashed.randrange(check.fleet.spines) for _ in range(check.flows)]


def _pair(check: _Check, source: int, destination: int, seed: int) -> dict[str, Any]:
    fleet, sizes = check.fleet, [check.target] * check.flows
    if check.faults:
        along = [check.size(fleet.path(source, destination, spine)) for spine in range(fleet.spines)]
        if min(along) < check.target:
            sizes = [along[spine] for spine in _spines(check, source, destination, seed)]
    flows = [
        {"verdict": "carries_target" if size == check.target else "black_hole", "path_mtu_bytes": size}
        for size in sizes
    ]  # fmt: skip
    return {
        "source": fleet.name(source), "destination": fleet.name(destination),
        "source_address": fleet.address(source), "destination_address": fleet.address(destination), "family": 4,
        **verdict.of_pair(flows, check.target), "route_mtu_bytes": check.target, "told_by": [],
        "controls": {"sent": 2 * check.flows, "lost": 0}, "tcp": None, "traces": [], "interface": "eth0",
        "seconds": 0.0,
    }  # fmt: skip


def _add_traces(check: _Check, pair: dict[str, Any], numbers: dict[str, int], seed: int) -> None:
    """One bad flow, and a good one where there is one."""
    source, destination = numbers[pair["source"]], numbers[pair["destination"]]
    done = set()
    for port, spine in enumerate(_spines(check, source, destination, seed), 40000):
        path = check.fleet.path(source, destination, spine)
        is_bad = check.size(path) < check.target
        if is_bad not in done:
            done.add(is_bad)
            pair["traces"].append(check.trace(path, port, pair["destination_address"], is_bad))


def _host(fleet: Fleet, index: int, mtu: int) -> dict[str, Any]:
    address = {"address": fleet.address(index), "prefix_length": 24, "family": 4}
    facts = {"interfaces": [{"name": "eth0", "mtu": mtu, "up": True, "addresses": [address]}], "sysctls": {}}
    return {"name": fleet.name(index), "addresses": [fleet.address(index)], "facts": facts, "error": None}


def _faults(findings: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from (each for each in findings if CATALOGUE[each["kind"]].is_fault)


def is_named(fault: Fault, findings: Iterable[dict[str, Any]]) -> bool:
    """Whether a finding names the culprit and nothing else: the host, both ends of the link, or the spine itself."""
    return any(_fits(fault, each) for each in _faults(findings))


def _fits(fault: Fault, finding: dict[str, Any]) -> bool:
    words = finding["where"].replace(",", " ").replace(":", " ").split()
    if fault.kind.startswith("nic"):
        way = fault.kind.partition("_")[2]
        ways = (way,) if way else ("sending", "receiving")
        return list(finding["hosts"]) == list(fault.culprits) and all(each in words for each in ways)
    if fault.kind == "spine":
        return str(finding["where"]).startswith(f"at router {fault.culprits[0]} ")
    return str(finding["where"]).startswith("between ") and all(each in words for each in fault.culprits)


def is_accused(faults: Sequence[Fault], findings: Iterable[dict[str, Any]]) -> list[str]:
    """Where findings name hosts or routers that no fault touches: false accusations."""
    touched = {end for fault in faults for link in fault.links for end in link}
    wrong = []
    for each in _faults(findings):
        # That somewhere behind hops without an answer, or on some path, is a fault is true and accuses nobody.
        if each["where"].startswith(("unknown", "one of the parallel paths")) or "nothing)" in each["where"]:
            continue
        words = each["where"].replace(",", " ").replace("(", " ").replace(")", " ").split()
        if not touched & set(words):
            wrong.append(each["where"])
    return wrong
