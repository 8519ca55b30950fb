"""Whether the neighbour tables of kernels take what a check needs. Pure.

A kernel drops what it would send to a neighbour that finds no room in its table: whoever it was for looks unreachable.
All network namespaces of a kernel share one table of each IP version, so that many hosts on one machine fill it by
their number. Permanent entries need no room (Linux 5.0 and later)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from framegauge.check.judgement.groups import subnet

__all__ = ["Way", "enough", "needed", "setting", "subnets_of", "table_of"]

SPARE = 2  # a table holds what other traffic of its hosts needs, too


class Way(NamedTuple):
    """Packets from a host to another, and whether that answers."""

    source: str
    source_address: str
    destination: str
    destination_address: str
    is_answered: bool


def needed(ways: Iterable[Way], group: Callable[[str, str], str], permanent: Mapping[str, int]) -> int:
    """How many neighbours hosts must find room for: those in a subnet of their own (`group` names that of a host's
    address), and one router each for all others. `permanent` has the hosts that are meant, with the number of their
    permanent entries."""
    hops: dict[str, set[str]] = defaultdict(set)
    for way in ways:
        is_near = group(way.source, way.source_address) == group(way.destination, way.destination_address)
        hops[way.source].add(way.destination_address if is_near else "router")
        if way.is_answered:
            hops[way.destination].add(way.source_address if is_near else "router")
    return sum(max(0, len(hops[name]) - known) for name, known in permanent.items())


def subnets_of(facts: Mapping[str, Mapping[str, Any]]) -> Callable[[str, str], str]:
    """The subnet of a host's address, by the prefix that the host states in its facts."""
    known = {
        (name, entry["address"]): subnet(entry["address"], entry["prefix_length"])
        for name, host in facts.items() for interface in host["interfaces"] for entry in interface["addresses"]
    }  # fmt: skip
    return lambda name, address: known.get((name, address)) or subnet(address)


def table_of(facts: Mapping[str, Any] | None, family: int) -> Mapping[str, Any] | None:
    """A host's neighbour table of one IP version; None where an older agent does not say, or it was not read."""
    table: Mapping[str, Any] | None = ((facts or {}).get("neighbour_tables") or {}).get(f"ipv{family}")
    return table


def enough(most: int, entries: int) -> int:
    """A limit that is larger than the present one, and has room for so many and for others: a power of two."""
    return 1 << (SPARE * max(most, entries, 1) - 1).bit_length()


def setting(family: int) -> str:
    """The name of the limit, as sysctl(8) knows it. It exists outside of other network namespaces only."""
    return f"net.ipv{family}.neigh.default.gc_thresh3"
