"""From what was measured to causes: one finding a cause, and "unknown" where the measurements do not say.

The order is that of the evidence: what something said, then readings that agree with measurements, then hosts that
neighbours testify against, then links that traces name, then subnets, then hosts without a neighbour. What nothing
explains is reported as such. docs/reference/mtu-faults.md tells how the kinds are told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.check.judgement import blame_echo, blame_hops, blame_hosts, blame_readings, blame_told
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Mesh
from framegauge.check.judgement.findings import CATALOGUE, Finding

__all__ = ["blame"]


def blame(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The findings of a result document: faults first, those that explain most before the others."""
    case = Case(Mesh.read(document))
    blame_echo.faults(case)
    blame_told.tunnels(case)
    blame_told.interfaces(case)
    blame_told.routers(case)
    blame_told.fragments(case)
    blame_hosts.hosts(case, with_neighbour=True)
    blame_hops.between_routers(case)
    blame_hops.ports(case)
    blame_hosts.subnets(case)
    blame_hosts.hosts(case, with_neighbour=False)
    blame_hosts.members(case)
    blame_hops.branches(case)
    blame_hosts.leftovers(case)
    blame_hosts.unreachable(case)
    blame_readings.unavailable(case)
    blame_echo.doubts(case)
    blame_readings.undecided(case)
    blame_readings.caches(case)
    blame_readings.clamped(case)
    blame_readings.differing(case)
    blame_readings.mismatched_tunnels(case)
    blame_readings.discovery(case)
    blame_readings.losses(case)
    return [each.as_document() for each in sorted(_joined(case), key=_rank)]


def _joined(case: Case) -> list[Finding]:
    """Both families of the same hosts with the same sizes are one cause, though their addresses differ."""
    found: dict[tuple[Any, ...], Finding] = {}
    for each in case.findings:
        families = {family for _, _, family in each.pairs}
        sizes = tuple(sorted({case.mesh.by_key[pair].path_mtu or 0 for pair in each.pairs}))
        ends = tuple(sorted({pair[:2] for pair in each.pairs}))
        same = (each.kind, ends, sizes, tuple(sorted(families)))
        other = found.get((each.kind, ends, sizes, (4,))) if families == {6} else None
        if other is None:
            # Two findings of one family are two causes, however alike: the second keeps a place of its own.
            found[same if same not in found else (*same, len(found))] = each
            continue
        where = other.where if other.where == each.where else f"{other.where}; {each.where}"
        found[each.kind, ends, sizes, (4,)] = Finding.about(
            each.kind, where, other.hosts + each.hosts, other.pairs + each.pairs,
            other.evidence if other.evidence == each.evidence else f"{other.evidence} IPv6: {each.evidence}",
            other.fix if other.fix == each.fix else f"{other.fix}; IPv6: {each.fix}", other.ask,
        )  # fmt: skip
    return list(found.values())


def _rank(finding: Finding) -> tuple[bool, int, str, str]:
    return not CATALOGUE[finding.kind].is_fault, -len(finding.pairs), finding.kind, finding.where
