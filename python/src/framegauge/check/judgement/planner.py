"""Which ordered pairs to probe, what that covers, and what it costs. Seeded: the same hosts give the same plan.

Up to 64 hosts every ordered pair is probed. Above, each host is probed both ways with three peers (one of its own group
if it has one there, so that its own port and the way out of the group can be told apart), and then every ordered pair
of groups at least once.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from framegauge.check.judgement.groups import subnet

__all__ = [
    "COVERAGE_OF", "FULL_MESH_HOSTS", "PEERS", "Cost", "Member", "Plan", "expected_cost", "flows_needed",
    "member_coverage", "plan",
]  # fmt: skip

FULL_MESH_HOSTS = 64
PEERS = 3
# Above this many groups their pairs are too many: each group then meets this many others, in both directions.
GROUPS_IN_FULL, GROUP_PEERS = 64, 16
COVERAGE_OF = (4, 8, 16, 64)
CONTROL_BYTES, ACKNOWLEDGEMENT_BYTES, SECOND_BYTES = 128, 100, 1500


@dataclass(frozen=True)
class Member:
    """A host to plan for: its addresses ("10.0.1.7/24", or without the prefix), and its rack where that is known."""

    name: str
    addresses: tuple[str, ...] = ()
    group: str | None = None

    def place(self) -> str:
        """Its group: the rack if given, else the subnet of its first address, else nothing in common with others."""
        if self.group is not None:
            return self.group
        return subnet(self.addresses[0]) if self.addresses else f"host {self.name}"


@dataclass(frozen=True)
class Plan:
    """What to probe, as (source, destination), and what share of everything that is."""

    kind: str
    pairs: tuple[tuple[str, str], ...]
    of: int
    groups: Mapping[str, str] = field(default_factory=dict)  # host to group
    seed: int = 0

    def as_document(self) -> dict[str, object]:
        """The field `plan` of the result document."""
        between, of = self.group_pairs()
        return {
            "kind": self.kind, "pairs": len(self.pairs), "of": self.of, "groups": len(set(self.groups.values())),
            "group_pairs": {"probed": between, "of": of}, "hosts_both_ways": self.hosts_both_ways(),
        }  # fmt: skip

    def group_pairs(self) -> tuple[int, int]:
        """Ordered pairs of different groups that at least one probed pair joins, and how many there are."""
        met = {(self.groups[source], self.groups[destination]) for source, destination in self.pairs}
        count = len(set(self.groups.values()))
        return sum(1 for source, destination in met if source != destination), count * (count - 1)

    def hosts_both_ways(self) -> float:
        """The share of hosts that are probed as senders and as receivers."""
        senders, receivers = ({pair[end] for pair in self.pairs} for end in (0, 1))
        return len(senders & receivers) / len(self.groups) if self.groups else 0.0

    def group_flows(self, flows: int) -> dict[tuple[str, str], int]:
        """Flows between each ordered pair of groups, over all of its probed pairs."""
        counts: Counter[tuple[str, str]] = Counter()
        for source, destination in self.pairs:
            counts[self.groups[source], self.groups[destination]] += flows
        return dict(counts)


@dataclass(frozen=True)
class Cost:
    """What a plan sends if nothing is wrong, and how long that takes at the pacing."""

    bytes_total: int
    bytes_busiest_host: int
    seconds: float | None  # None: not paced


def plan(members: Iterable[Member], seed: int = 0, full_mesh_hosts: int = FULL_MESH_HOSTS, peers: int = PEERS) -> Plan:
    """The pairs to probe; names must differ."""
    hosts = list(members)
    names = [host.name for host in hosts]
    if len(set(names)) != len(names):
        raise ValueError(f"two hosts are named {Counter(names).most_common(1)[0][0]!r}, expected different names")
    groups = {host.name: host.place() for host in hosts}
    of = len(names) * (len(names) - 1)
    if len(names) <= full_mesh_hosts:
        pairs = tuple((source, destination) for source in names for destination in names if source != destination)
        return Plan("full_mesh", pairs, of, groups, seed)
    chooser = random.Random(seed)
    inside: dict[str, list[str]] = defaultdict(list)
    for name in names:
        inside[groups[name]].append(name)
    probed_pairs = _peers(names, groups, inside, peers, chooser)
    probed_pairs |= _between_groups(inside, probed_pairs, groups, chooser)
    order = {name: index for index, name in enumerate(names)}
    chosen = tuple(sorted(probed_pairs, key=lambda pair: (order[pair[0]], order[pair[1]])))
    return Plan("sampled", chosen, of, groups, seed)


def _peers(
    names: Sequence[str], groups: Mapping[str, str], inside: Mapping[str, list[str]], peers: int, chooser: random.Random
) -> set[tuple[str, str]]:
    """Each host both ways with `peers` others: the next of its own group, and others from anywhere else."""
    probed_pairs: set[tuple[str, str]] = set()
    position = {name: index for members in inside.values() for index, name in enumerate(members)}
    for name in names:
        own = inside[groups[name]]
        chosen = {own[(position[name] + 1) % len(own)]} if len(own) > 1 else set()
        few = len(names) - len(own) < peers  # nearly all are in one group
        while len(chosen) < min(peers, len(names) - 1):
            other = names[chooser.randrange(len(names))]
            if other != name and (few or groups[other] != groups[name]):
                chosen.add(other)
        for other in sorted(chosen):
            probed_pairs |= {(name, other), (other, name)}
    return probed_pairs


def _between_groups(
    inside: Mapping[str, list[str]],
    probed_pairs: set[tuple[str, str]],
    groups: Mapping[str, str],
    chooser: random.Random,
) -> set[tuple[str, str]]:
    """One pair of hosts for each ordered pair of groups that none joins yet."""
    met = {(groups[source], groups[destination]) for source, destination in probed_pairs}
    labels = list(inside)
    added: set[tuple[str, str]] = set()
    for source in labels:
        others = [label for label in labels if label != source]
        if len(labels) > GROUPS_IN_FULL:
            others = chooser.sample(others, GROUP_PEERS)
        for destination in others:
            for ends in ((source, destination), (destination, source)):
                if ends not in met:
                    met.add(ends)
                    added.add((chooser.choice(inside[ends[0]]), chooser.choice(inside[ends[1]])))
    return added


def member_coverage(flows: int, members: Iterable[int] = COVERAGE_OF) -> dict[str, float]:
    """The chance that one bad of k members carries at least one of the flows: 1 - (1 - 1/k)^flows."""
    return {str(count): 1 - (1 - 1 / count) ** flows for count in members}


def flows_needed(members: int, probability: float = 0.99) -> int:
    """The fewest flows that meet one bad of `members` with this probability."""
    if not 0 < probability < 1:
        raise ValueError(f"found probability {probability}, expected one between 0 and 1")
    return 1 if members <= 1 else math.ceil(math.log(1 - probability) / math.log(1 - 1 / members))


def expected_cost(
    pairs: Iterable[tuple[str, str]], flows: int, target_mtu: int, bits_per_second: float | None,
    control_bytes: int = CONTROL_BYTES, acknowledgement_bytes: int = ACKNOWLEDGEMENT_BYTES,
) -> Cost:  # fmt: skip
    """Bytes and time for hosts without a fault, in IP packets.

    A flow costs its sender target + 1500 + control bytes, and its receiver one acknowledgement for each of the
    three. The time is what the busiest host has to send, over what the pacing lets a host send; a fault adds
    the search for its size.
    """
    probe = flows * (target_mtu + (SECOND_BYTES if target_mtu > SECOND_BYTES else 0) + control_bytes)
    answer = flows * acknowledgement_bytes * (3 if target_mtu > SECOND_BYTES else 2)
    sent: Counter[str] = Counter()
    for source, destination in pairs:
        sent[source] += probe
        sent[destination] += answer
    busiest = max(sent.values(), default=0)
    return Cost(sum(sent.values()), busiest, None if not bits_per_second else 8 * busiest / bits_per_second)
