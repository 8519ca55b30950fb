"""The networks that a rack can be, as nodes and links: what `topology` and `links` of `rack.up` come to. Pure.

A topology is the mapping that the pipe knows (pipe/README.md). Hosts are leaves; all other nodes are switches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["ROUTINGS", "directed", "drawn_links", "has_choice", "joined", "matches", "setting", "skewed", "switches"]

Json = Mapping[str, Any]
Link = tuple[str, str]

# By the word of a study: which paths, and how one of them is chosen.
ROUTINGS: Mapping[str, Mapping[str, str]] = {
    "ecmp": {"paths": "shortest", "choice": "flow"},
    "spraying": {"paths": "shortest", "choice": "packet"},
    "equal-length": {"paths": "equal-length", "choice": "flow"},
    "equal-length-random": {"paths": "equal-length", "choice": "packet"},
}


def drawn_links(topology: Json, hosts: Sequence[str]) -> list[Link]:
    """Every link once, as one would draw it: hosts' first, in their order. The number of hosts must fit."""
    return list(_DRAWN[topology["kind"]](topology, hosts))


def directed(topology: Json, hosts: Sequence[str]) -> list[Link]:
    """Every link both ways: each is a port of the node that it comes from."""
    return [way for one, other in drawn_links(topology, hosts) for way in ((one, other), (other, one))]


def switches(links: Sequence[Link], hosts: Sequence[str]) -> list[str]:
    """All nodes that are no hosts, in the order in which links name them."""
    known = set(hosts)
    return list(dict.fromkeys(node for link in links for node in link if node not in known))


def joined(links: Sequence[Link], start: str) -> set[str]:
    """The nodes that links lead to from one, that one included."""
    near: dict[str, set[str]] = {}
    for one, other in links:
        near.setdefault(one, set()).add(other)
        near.setdefault(other, set()).add(one)
    found, left = {start}, [start]
    while left:
        fresh = near.get(left.pop(), set()) - found
        found |= fresh
        left += fresh
    return found


def has_choice(links: Sequence[Link]) -> bool:
    """Whether there is more than one path between any two nodes of a connected network: it is no tree."""
    return len(links) >= len({node for link in links for node in link})


def matches(pattern: str, name: str) -> bool:
    """Whether a name is meant: `*` stands for any characters, everything else for itself."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


def setting(overrides: Sequence[Json], one: str, other: str) -> dict[str, Any]:
    """What overrides say of the link from one node to another; later entries go before earlier ones, key by key."""
    found: dict[str, Any] = {}
    for each in overrides:
        if matches(each["from"], one) and matches(each["to"], other):
            found |= {name: value for name, value in each.items() if name not in ("from", "to")}
    return found


def skewed(bits_per_second: int, ppm: int) -> int:
    """A rate that is (1 + ppm/1e6) times what it says, in whole bits a second, halves up."""
    return (bits_per_second * (1_000_000 + ppm) + 500_000) // 1_000_000


def _rack(_: Json, hosts: Sequence[str]) -> Iterator[Link]:
    yield from ((host, "switch") for host in hosts)


def _dumbbell(topology: Json, hosts: Sequence[str]) -> Iterator[Link]:
    for place, host in enumerate(hosts):
        yield host, "left" if place < topology["left"] else "right"
    yield "left", "right"


def _leaf_spine(topology: Json, hosts: Sequence[str]) -> Iterator[Link]:
    leaves = [f"leaf{number}" for number in range(1, topology["leaves"] + 1)]
    each = len(hosts) // len(leaves)
    yield from ((host, leaves[place // each]) for place, host in enumerate(hosts))
    yield from ((leaf, f"spine{number}") for leaf in leaves for number in range(1, topology["spines"] + 1))


def _fat_tree(topology: Json, hosts: Sequence[str]) -> Iterator[Link]:
    """M. Al-Fares, A. Loukissas, A. Vahdat, "A Scalable, Commodity Data Center Network Architecture", SIGCOMM 2008: k
    pods of k/2 edge and k/2 aggregation switches; the n-th aggregation switch of every pod has the n-th k/2 cores."""
    half = topology["k"] // 2
    numbers, pods = range(1, half + 1), range(1, topology["k"] + 1)
    edges = [f"edge{pod}-{number}" for pod in pods for number in numbers]
    yield from ((host, edges[place // half]) for place, host in enumerate(hosts))
    yield from (
        (f"edge{pod}-{one}", f"aggregation{pod}-{other}") for pod in pods for one in numbers for other in numbers
    )
    for pod in pods:
        for number in numbers:
            for core in numbers:
                yield f"aggregation{pod}-{number}", f"core{(number - 1) * half + core}"


def _custom(topology: Json, _hosts: Sequence[str]) -> Iterator[Link]:
    yield from ((one, other) for one, other in topology["links"])


_DRAWN = {
    "rack": _rack,
    "dumbbell": _dumbbell,
    "leaf-spine": _leaf_spine,
    "fat-tree": _fat_tree,
    "custom": _custom,
}
