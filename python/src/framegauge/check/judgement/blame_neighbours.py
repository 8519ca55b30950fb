"""Pairs that nothing reached while a kernel had no room for another neighbour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import NeighbourTable, Pair
from framegauge.check.judgement.findings import Command, Finding
from framegauge.check.judgement.neighbours import Way, enough, needed, setting

__all__ = ["full"]


def full(case: Case) -> None:
    """`neighbour_table_full`: one finding a kernel and family, before any host or filter is suspected."""
    for family in (4, 6):
        groups: dict[str, list[Pair]] = defaultdict(list)
        for pair in list(case.unreachable.values()):
            table = _table(case, pair) if pair.family == family else None
            if table is not None:
                groups[table.kernel].append(pair)
        for kernel, pairs in sorted(groups.items()):
            _told(case, family, kernel, pairs)


def _table(case: Case, pair: Pair) -> NeighbourTable | None:
    """The table that was full at an end of a pair, which answers packets as well; None where another reason is known:
    its kernel has no route, or an interface is down."""
    ends = case.mesh.sender(pair), case.mesh.receiver(pair)
    if (pair.sent == 0 and pair.said) or any(end is not None and not end.up for end in ends):
        return None
    tables = (case.mesh.host(name).tables.get(pair.family) for name in (pair.source, pair.destination))
    return next((table for table in tables if table is not None and table.refused), None)


def _entries(case: Case, family: int, tables: Mapping[str, NeighbourTable]) -> int:
    """How many neighbours these hosts must find room for, for the pairs of the check."""
    ways = [
        Way(pair.source, pair.source_address, pair.destination, pair.destination_address, not pair.is_one_ended)
        for pair in case.mesh.pairs
        if pair.family == family and pair.source_address is not None and pair.destination_address is not None
    ]
    return needed(ways, case.mesh.group, {name: table.permanent for name, table in tables.items()})


def _told(case: Case, family: int, kernel: str, pairs: Sequence[Pair]) -> None:
    tables = {name: host.tables.get(family) for name, host in case.mesh.hosts.items()}
    own = {name: table for name, table in tables.items() if table is not None and table.kernel == kernel}
    most, refused = min(table.most for table in own.values()), max(table.refused for table in own.values())
    entries = _entries(case, family, own)
    names, limit = remedies.host_names(own), setting(family)
    machine = f"{'' if len(own) == 1 else 'the machine of '}{names}, outside of network namespaces"
    text = (
        f"The neighbour table (IPv{family}) of the kernel of {names} was full {refused} times while the check ran. It "
        f"takes {most} entries ({limit}), for all network namespaces of the kernel together; the check needs {entries} "
        f"of them. A kernel drops what it would send to a neighbour that finds no room."
    )
    keys = [pair.key for pair in pairs]
    case.add(
        Finding.about(
            "neighbour_table_full", f"neighbour table of {names} (IPv{family})",
            {end for pair in pairs for end in (pair.source, pair.destination)} & set(own), keys,
            f"{text} No packet of any size arrived for {remedies.count_of(len(pairs), 'pair')}.", text,
            advice="Then check again: pairs that stay unreachable have another reason.",
            commands=(
                Command(
                    f"sysctl -w {limit}={enough(most, entries)}", machine,
                    "more than all neighbours that its hosts talk to at a time", family,
                ),
            ),
            ask=f"How many hosts are in the subnets of {names}? {limit} must exceed their number.",
            facts=(("Neighbour table (reading)", f"full {refused} times, takes {most} entries"),),
        ),
        keys,
    )  # fmt: skip
