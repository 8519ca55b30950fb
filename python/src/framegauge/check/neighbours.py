"""Says before a check that a kernel's neighbour table is too small for it, and asks after it whether one was full."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from framegauge.check.judgement import remedies
from framegauge.check.judgement.neighbours import Way, enough, needed, setting, subnets_of, table_of
from framegauge.check.plan import Prepared
from framegauge.testbeds.base import Json

__all__ = ["crowded", "refused", "witnesses"]


def _kernels(facts: Mapping[str, Json]) -> dict[str, list[str]]:
    """By kernel, the hosts that share its tables; those that do not say are none of them."""
    hosts: dict[str, list[str]] = defaultdict(list)
    for name, host_facts in facts.items():
        boot = (host_facts.get("neighbour_tables") or {}).get("boot_id")
        if boot is not None:
            hosts[boot].append(name)
    return hosts


def crowded(prepared: Prepared) -> Iterator[str]:
    """One sentence for each table that takes fewer neighbours than this check needs."""
    group = subnets_of(prepared.facts)
    for family in (4, 6):
        ways = [
            Way(path.source, path.ends.source, path.destination, path.ends.destination, not prepared.targets)
            for path in prepared.paths
            if path.family == family and path.ends is not None and path.ends.error is None
        ]
        for names in _kernels(prepared.facts).values():
            tables = {name: table for name in names if (table := table_of(prepared.facts[name], family)) is not None}
            most = min((table["most"] for table in tables.values()), default=None)
            entries = needed(ways, group, {name: table["permanent"] for name, table in tables.items()})
            if most is not None and entries > most:
                yield (
                    f"the kernel of {remedies.host_names(names)} takes {most} neighbours ({setting(family)}), and this "
                    f"check needs {entries}: pairs may look unreachable for that reason alone; first, on that machine "
                    f"and outside of network namespaces: sysctl -w {setting(family)}={enough(most, entries)}"
                )


def witnesses(prepared: Prepared, pairs: Sequence[Json]) -> set[str]:
    """One host of each kernel with an end of a pair that nothing reached: who is asked once more for the kernel's
    tables."""
    ends = {pair[end] for pair in pairs if pair["verdict"] == "unreachable" for end in ("source", "destination")}
    living = {member.name for member in prepared.members if member.name not in prepared.errors}
    kernels = [hosts for hosts in _kernels(prepared.facts).values() if ends & set(hosts)]
    return {candidates[0] for hosts in kernels if (candidates := [name for name in hosts if name in living])}


def refused(prepared: Prepared, later: Mapping[str, Json]) -> dict[str, Json]:
    """By host, how often its kernel's tables had no room since the facts were read; None where nobody counts it."""
    counts: dict[str, Json] = {}
    for hosts in _kernels(prepared.facts).values():
        for witness in set(hosts) & set(later):
            since = {f"ipv{family}": _since(prepared.facts[witness], later[witness], family) for family in (4, 6)}
            counts |= dict.fromkeys(hosts, since)
    return counts


def _since(before: Json, after: Json, family: int) -> int | None:
    tables = table_of(before, family), table_of(after, family)
    first, last = ((table or {}).get("refused") for table in tables)
    return None if first is None or last is None else max(0, last - first)
