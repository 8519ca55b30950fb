"""The networks of a rack as nodes and links, as they follow from `topology` and `links` of `rack.up`.

A topology is a mapping as in the pipe (pipe/README.md). Hosts and routers are leaves; all other nodes are switches. A
leaf with several links has an end for each, numbered in their order: `h1.1`, `h1.2`. Any other node has one end, which
has the node's name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

__all__ = [
    "ROUTINGS",
    "Ways",
    "directed",
    "drawn_links",
    "ends_of",
    "fits",
    "has_choice",
    "joined",
    "matches",
    "members",
    "node_of",
    "numbered",
    "routers",
    "segments",
    "setting",
    "skewed",
    "switches",
]

Json = Mapping[str, Any]
Link = tuple[str, str]

# By the word in a study file: the paths, and how one of them is chosen.
ROUTINGS: Mapping[str, Mapping[str, str]] = {
    "ecmp": {"paths": "shortest", "choice": "flow"},
    "spraying": {"paths": "shortest", "choice": "packet"},
    "equal-length": {"paths": "equal-length", "choice": "flow"},
    "equal-length-random": {"paths": "equal-length", "choice": "packet"},
}


def drawn_links(topology: Json, hosts: Sequence[str]) -> list[Link]:
    """Every link once, by its ends, those of hosts first and in order. The number of hosts must fit the topology."""
    return numbered(list(_DRAWN[topology["kind"]](topology, hosts)), {*hosts, *routers(topology)})


def directed(topology: Json, hosts: Sequence[str]) -> list[Link]:
    """Every link in both directions; each direction is a port of the end where it begins."""
    return [link for source, target in drawn_links(topology, hosts) for link in ((source, target), (target, source))]


def routers(topology: Json) -> list[str]:
    """The names of a topology's routers, in order."""
    return [router["name"] for router in topology.get("routers", ())]


def members(topology: Json) -> int:
    """The number of NICs that are the bond of a host; 1 without bonds."""
    return int(topology.get("nics", 1)) if topology.get("bond") is not None else 1


def numbered(links: Sequence[Link], leaves: Collection[str]) -> list[Link]:
    """Links between nodes as links between ends: each of `leaves` with several links has one end per link."""
    count, counts = Counter(node for link in links for node in link), Counter[str]()

    def end(node: str) -> str:
        if node not in leaves or count[node] == 1:
            return node
        counts[node] += 1
        return f"{node}.{counts[node]}"

    return [(end(source), end(target)) for source, target in links]


def node_of(end: str) -> str:
    """The node that an end belongs to: names of nodes contain no dot."""
    return end.partition(".")[0]


def ends_of(links: Sequence[Link], node: str) -> list[str]:
    """The ends of a node, in order."""
    return list(dict.fromkeys(end for link in links for end in link if node_of(end) == node))


def switches(links: Sequence[Link], leaves: Collection[str]) -> list[str]:
    """All nodes but the hosts and routers in `leaves`, in the order in which links name them."""
    return list(dict.fromkeys(end for link in links for end in link if node_of(end) not in leaves))


def joined(links: Sequence[Link], start: str) -> set[str]:
    """The nodes that links connect to `start`, which is included."""
    neighbours: dict[str, set[str]] = {}
    for source, target in links:
        neighbours.setdefault(source, set()).add(target)
        neighbours.setdefault(target, set()).add(source)
    reached, pending = {start}, [start]
    while pending:
        fresh = neighbours.get(pending.pop(), set()) - reached
        reached |= fresh
        pending += fresh
    return reached


def segments(links: Sequence[Link]) -> list[set[str]]:
    """The ends and switches of each segment, from links between ends: all that switches join without a router."""
    groups: list[set[str]] = []
    for node, _ in links:
        if not any(node in group for group in groups):
            groups.append(joined(links, node))
    return groups


def has_choice(links: Sequence[Link]) -> bool:
    """Whether any two ends have more than one path between them: some segment is not a tree."""
    return len(links) > len({end for link in links for end in link}) - len(segments(links))


class Ways:
    """The routes of packets from end to end, over links between ends and through `routers`, given by name in order.

    A subnet is a segment with one NIC of each host: the second NICs of hosts on a segment form another subnet, over the
    same links and without routers.
    """

    def __init__(self, links: Sequence[Link], routers: Sequence[str]) -> None:
        # By end or switch: its segment, and the number of earlier NICs of its node there.
        self._subnets: dict[str, tuple[int, int]] = {}
        for number, segment in enumerate(segments(links)):
            counts: Counter[str] = Counter()
            for end in dict.fromkeys(end for link in links for end in link if end in segment):
                self._subnets[end] = number, counts[node_of(end)]
                counts[node_of(end)] += 1
        self._sides = {name: [self._subnets[end] for end in ends_of(links, name)] for name in routers}

    def subnet(self, end: str) -> tuple[int, int]:
        """The identity of an end's subnet."""
        return self._subnets[end]

    def routers(self, one: str, other: str) -> list[str] | None:
        """The routers on the way from one end, or switch, to another; None if there is no way.

        It is the way with the fewest routers, and the first of several, like the routes that hosts are given.
        """
        to_go, edge = {self._subnets[other]: 0}, {self._subnets[other]}
        while edge:
            neighbours = (side for sides in self._sides.values() if edge.intersection(sides) for side in sides)
            edge = set(neighbours) - to_go.keys()
            to_go |= dict.fromkeys(edge, max(to_go.values()) + 1)
        position, names = self._subnets[one], []
        if position not in to_go:
            return None
        while to_go[position]:
            name, position = next(
                (name, side)
                for name, sides in self._sides.items()
                if position in sides
                for side in sides
                if to_go[side] < to_go[position]
            )
            names.append(name)
        return names


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern matches a name: `*` stands for any characters, everything else for itself."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


def fits(pattern: str, end: str) -> bool:
    """Whether a pattern matches an end, by its own name or by that of its node."""
    return matches(pattern, end) or matches(pattern, node_of(end))


def setting(overrides: Sequence[Json], one: str, other: str) -> dict[str, Any]:
    """The overrides for the link from one end to another; later entries take precedence, key by key."""
    values: dict[str, Any] = {}
    for override in overrides:
        if fits(override["from"], one) and fits(override["to"], other):
            values |= {name: value for name, value in override.items() if name not in ("from", "to")}
    return values


def skewed(bits_per_second: int, ppm: int) -> int:
    """A rate multiplied by (1 + ppm/1e6), in whole bits per second, halves rounded up."""
    return (bits_per_second * (1_000_000 + ppm) + 500_000) // 1_000_000


def _rack(topology: Json, hosts: Sequence[str]) -> Iterator[Link]:
    yield from ((host, "switch") for host in hosts for _ in range(topology.get("nics", 1)))


def _dumbbell(topology: Json, hosts: Sequence[str]) -> Iterator[Link]:
    for index, host in enumerate(hosts):
        yield host, "left" if index < topology["left"] else "right"
    yield "left", "right"


def _leaf_spine(topology: Json, hosts: Sequence[str]) -> Iterator[Link]:
    leaves = [f"leaf{number}" for number in range(1, topology["leaves"] + 1)]
    hosts_per_leaf = len(hosts) // len(leaves)
    yield from ((host, leaves[index // hosts_per_leaf]) for index, host in enumerate(hosts))
    yield from ((leaf, f"spine{number}") for leaf in leaves for number in range(1, topology["spines"] + 1))


def _fat_tree(topology: Json, hosts: Sequence[str]) -> Iterator[Link]:
    """M. Al-Fares, A. Loukissas, A. Vahdat, "A Scalable, Commodity Data Center Network Architecture", SIGCOMM 2008: k
    pods of k/2 edge and k/2 aggregation switches; the n-th aggregation switch of every pod has the n-th k/2 cores."""
    half = topology["k"] // 2
    numbers, pods = range(1, half + 1), range(1, topology["k"] + 1)
    edges = [f"edge{pod}-{number}" for pod in pods for number in numbers]
    yield from ((host, edges[index // half]) for index, host in enumerate(hosts))
    yield from (
        (f"edge{pod}-{edge}", f"aggregation{pod}-{aggregation}")
        for pod in pods
        for edge in numbers
        for aggregation in numbers
    )
    for pod in pods:
        for number in numbers:
            for core in numbers:
                yield f"aggregation{pod}-{number}", f"core{(number - 1) * half + core}"


def _custom(topology: Json, _hosts: Sequence[str]) -> Iterator[Link]:
    yield from ((source, target) for source, target in topology["links"])


_DRAWN = {
    "rack": _rack,
    "dumbbell": _dumbbell,
    "leaf-spine": _leaf_spine,
    "fat-tree": _fat_tree,
    "custom": _custom,
}
