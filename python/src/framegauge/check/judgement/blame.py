"""From measurements to causes: one finding per cause, and "unknown" where the measurements do not locate it.

The order is that of the evidence: rules of the hosts that drop just what is lost, errors that something returned,
then readings that agree with measurements, then hosts that compare badly with their neighbours, then links that traces
name, then subnets, then hosts without a neighbour. What nothing explains is reported as such.
docs/reference/mtu-faults.md has how the kinds are distinguished.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from framegauge.check.judgement import (
    blame_announced,
    blame_bundles,
    blame_cut,
    blame_echo,
    blame_errors,
    blame_hops,
    blame_hosts,
    blame_lengths,
    blame_nat,
    blame_neighbours,
    blame_ports,
    blame_rates,
    blame_rdma,
    blame_readings,
    blame_told,
    paths,
    programs,
    tables,
)
from framegauge.check.judgement.case import Case, counted
from framegauge.check.judgement.document import Mesh
from framegauge.check.judgement.findings import CATALOGUE, Finding

__all__ = ["blame"]


def blame(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The findings of a result document: faults first, those that explain most before the others."""
    case = Case(Mesh.read(document))
    blame_neighbours.full(case)
    blame_lengths.rules(case)
    blame_echo.faults(case)
    blame_told.tunnels(case)
    blame_told.bridged_tunnels(case)
    blame_told.interfaces(case)
    blame_ports.own(case)
    blame_errors.routers(case)
    blame_told.fragments(case)
    blame_hosts.hosts(case, with_neighbour=True)
    blame_errors.own_filters(case)
    blame_hops.between_routers(case)
    blame_hops.ports(case)
    blame_hosts.subnets(case)
    blame_hosts.hosts(case, with_neighbour=False)
    blame_hosts.members(case)
    blame_hops.branches(case)
    blame_bundles.bundles(case)
    blame_hosts.leftovers(case)
    blame_nat.translated(case)
    blame_hosts.unreachable(case)
    blame_readings.unavailable(case)
    blame_echo.doubts(case)
    blame_readings.undecided(case)
    blame_readings.caches(case)
    blame_readings.clamped(case)
    blame_announced.announced(case)
    blame_readings.differing(case)
    blame_cut.cut(case)
    blame_readings.mismatched_tunnels(case)
    blame_rdma.path_mtus(case)
    blame_readings.discovery(case)
    blame_rates.losses(case)
    blame_rates.limited(case)
    blame_errors.false_reports(case)
    causes = [(_with_hint(case, _joined(parts)), parts) for parts in _parts(case)]
    return [
        finding.as_document() | {"evidence_table": tables.table(case, parts), "path": paths.drawn(case, parts)}
        for finding, parts in sorted(causes, key=lambda cause: _rank(cause[0]))
    ]


def _parts(case: Case) -> list[tuple[Finding, ...]]:
    """Findings by cause: one of IPv4 and one of IPv6 are the same cause if they have the same kind, sizes and hosts.

    Which flows meet a bad parallel path is up to a hash, so that the pairs of one IP version may be fewer. That is
    one cause, too, if nothing else of this kind and size was found.
    """
    causes: list[tuple[Finding, ...]] = []
    alike: dict[tuple[Any, ...], list[Finding]] = defaultdict(list)
    for finding in case.findings:
        if len(finding.families) == 1:
            sizes = tuple(sorted({case.mesh.by_key[pair].path_mtu or 0 for pair in finding.pairs}))
            alike[finding.kind, sizes].append(finding)
        else:
            causes.append((finding,))
    for group in alike.values():
        causes += _paired(group)
    return causes


def _paired(group: list[Finding]) -> list[tuple[Finding, ...]]:
    """Those of IPv4 with those of IPv6 between the same hosts; the others alone."""
    left = {family: [entry for entry in group if entry.families == {family}] for family in (4, 6)}
    is_clear = all(len(entry) == 1 for entry in left.values())
    causes: list[tuple[Finding, ...]] = []
    for one in left[4]:
        others = (entry for entry in left[6] if _ends(entry) == _ends(one) or (is_clear and _is_part(one, entry)))
        other = next(others, None)
        if other is not None:
            left[6].remove(other)
        causes.append((one,) if other is None else (one, other))
    return [*causes, *((entry,) for entry in left[6])]


def _ends(finding: Finding) -> set[tuple[str, str]]:
    return {pair[:2] for pair in finding.pairs}


def _is_part(one: Finding, other: Finding) -> bool:
    return _ends(one) <= _ends(other) or _ends(other) <= _ends(one)


def _joined(parts: tuple[Finding, ...]) -> Finding:
    """One finding of both IP versions: what differs between them is said for each."""
    if len(parts) == 1:
        return parts[0]
    one, other = parts
    commands = [command for command in other.commands if command.family == 6 or not one.commands]
    return replace(
        one,
        where=one.where if other.where == one.where else f"{one.where}; {other.where}",
        hosts=tuple(sorted({*one.hosts, *other.hosts})),
        pairs=tuple(sorted({*one.pairs, *other.pairs})),
        evidence=one.evidence if other.evidence == one.evidence else f"{one.evidence} IPv6: {other.evidence}",
        summary=_summary(one, other),
        commands=tuple(dict.fromkeys([*one.commands, *commands])),
    )


def _summary(one: Finding, other: Finding) -> str:
    """With both places in one sentence, if nothing but the place differs."""
    if one.summary == other.summary:
        return one.summary
    if one.place and other.place:
        before, _, after = one.summary.partition(one.place)
        if other.summary == f"{before}{other.place}{after}":
            return f"{before}{one.place} (IPv6: {other.place}){after}"
    return f"{one.summary} IPv6: {other.summary}"


def _with_hint(case: Case, finding: Finding) -> Finding:
    """With what the size of a silent loss says of how a device counts, whose own MTU then reads as it should, and with
    rules and programs of hosts that may drop just what is lost."""
    pairs = [case.mesh.by_key[pair] for pair in finding.pairs]
    sizes = {pair.path_mtu for pair in pairs if pair.verdict == "black_hole"} - {None}
    hints = [f"{size} is {meaning}." for size in sorted(sizes, key=str) if (meaning := counted(size, case.mesh.target))]
    hints += [] if finding.kind == "dropped_by_rule" else case.rules_by_length(pairs)
    met = programs.beside(case.mesh, finding)
    pieces = blame_cut.lost_pieces(case, pairs) if finding.kind in programs.UNEXPLAINED else []
    hints += [*(program.text for program in met), *pieces]
    if not CATALOGUE[finding.kind].is_fault or not hints:
        return finding
    read = [*(hint for hint in case.rules_by_length(pairs) if hint in hints), *(program.text for program in met)]
    read += pieces
    return replace(
        finding,
        summary=f"{finding.summary} {' '.join(hints)}",
        evidence=" ".join([finding.evidence, *read]),
        commands=(*(program.look for program in met), *finding.commands),
    )


def _rank(finding: Finding) -> tuple[bool, int, str, float, str]:
    """Faults first, then what concerns most pairs; of one kind the smallest, which is what is felt."""
    limit = math.inf if finding.limit is None else finding.limit
    return not CATALOGUE[finding.kind].is_fault, -len(finding.pairs), finding.kind, limit, finding.where
