"""What stands against a change of an MTU, found before anything is changed: limits, what is stacked, who undoes it.

`survey` reads the facts of hosts through their agents; all else is pure: facts in, findings out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from framegauge.rollout.model import Asked, Finding, Json
from framegauge.rollout.owners import Edit, Ownership
from framegauge.rollout.preflight import devices, link_loss, neighbours, ownership, paths
from framegauge.rollout.preflight.case import Case

__all__ = ["edits", "findings", "owners"]

SEVERITIES = ("refused", "warning", "note")
RULES = (
    devices.limits, devices.xdp, devices.stack, devices.ports, devices.tunnels, devices.rdma, devices.open_vswitch,
    link_loss.found, paths.management, paths.tcp, paths.remembered, paths.routes, paths.far_end, paths.clamps,
    paths.router, paths.heartbeats, ownership.below,
)  # fmt: skip


def findings(facts: Mapping[str, Json], asked: Asked) -> list[Finding]:
    """What was found on each host that is asked for, the gravest first; hosts in the order of their waves.

    `facts` are those of `survey.read` by host; a host that is not among them is refused. Kinds in `asked.forced` are
    warnings where they would have refused the change.
    """
    results: list[Finding] = []
    for host in asked.hosts:
        if host not in facts:
            results.append(_missing(host))
            continue
        case = Case(host, asked.interfaces[host], asked, facts[host])
        if case.interface not in case.links:
            names = ", ".join(case.links.names()) or "none"
            remedy = "name one of them"
            results.append(case.finding("interface", "refused", "no such interface", f"one of {names}", remedy))
            continue
        results += sorted(_of(case), key=lambda finding: SEVERITIES.index(finding.severity))
    results += neighbours.findings(facts, asked)
    return [
        replace(finding, severity="warning")
        if finding.severity == "refused" and finding.what in asked.forced
        else finding
        for finding in results
    ]


def edits(facts: Mapping[str, Json], asked: Asked, hold: int | None = None) -> dict[str, list[Edit]]:
    """The changes of files that have the change last, by host, in the order in which they are to be made. `hold`: the
    MTU that routes through a gateway keep; None: what each host has before."""
    return {case.host: ownership.edits(case, hold) for case in _cases(facts, asked)}


def owners(facts: Mapping[str, Json], asked: Asked, hold: int | None = None) -> dict[str, Ownership]:
    """Who owns the MTU of each host, and what has them keep the change. `hold`: as for `edits`."""
    return {case.host: ownership.of(case, hold) for case in _cases(facts, asked)}


def _cases(facts: Mapping[str, Json], request: Asked) -> Iterator[Case]:
    """Those hosts that told their facts, and have the interface."""
    for host in request.hosts:
        if (
            host in facts
            and (case := Case(host, request.interfaces[host], request, facts[host])).interface in case.links
        ):
            yield case


def _of(case: Case) -> Iterator[Finding]:
    for rule in RULES:
        yield from rule(case)
    yield from ownership.found(case, ownership.of(case))


def _missing(host: str) -> Finding:
    remedy = "make sure that it can be reached, or leave it out"
    return Finding(host, "host", "refused", "no answer", "a host that tells its facts", remedy)
