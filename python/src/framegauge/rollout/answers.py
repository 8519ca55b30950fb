"""Asks the neighbours of a roll-out, gently, how large packets they answer: echoes no larger than hosts send now.

Each neighbour is asked by one host, one path with one flow. A host whose interface is small cannot ask for more.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from framegauge.check.judgement.verdict import of_pair
from framegauge.check.plan import Member, ask_all
from framegauge.rollout.model import Asked, Json
from framegauge.rollout.preflight.case import Case
from framegauge.rollout.preflight.neighbours import strangers

__all__ = ["probed"]

MOST_ASKED = 64
PATIENCE_SECONDS, ANSWER_SECONDS = 5.0, 30.0
FALSE_CLAIM = 1e-6
GAP_SECONDS, IN_FLIGHT_BYTES = 0.02, 32_768  # few packets, far apart
LEAST_MTU = 1280


def probed(members: Sequence[Member], facts: Mapping[str, Json], asked: Asked) -> dict[str, Json]:
    """The facts with `answered`: by address the largest packet that came back. What does not answer is not among them,
    and hosts that may send no echo have asked nobody."""
    cases = [Case(name, asked.interfaces[name], asked, facts[name]) for name in asked.hosts if name in facts]
    cases = [entry for entry in cases if entry.interface in entry.links]
    raised = sorted((entry for entry in cases if entry.is_raised), key=lambda entry: -entry.link.mtu)
    paths: dict[str, list[Json]] = {}
    for neighbour in strangers(cases)[:MOST_ASKED]:
        for address in sorted(neighbour.addresses):
            # The host with the largest interface can ask for most.
            for case in raised:
                source = _source(case, address)
                if source is not None:
                    paths.setdefault(case.host, []).append({"source": source, "destination": address, "tcp_port": None})
                    break
    mtus = {case.host: min(case.link.mtu, asked.target_mtu) for case in raised}
    errors: dict[str, str] = {}

    def params(member: Member) -> Json | None:
        if member.name not in paths or mtus[member.name] < LEAST_MTU:
            return None
        return {
            "token": secrets.token_hex(16), "target_mtu": mtus[member.name], "false_claim": FALSE_CLAIM,
            "bits_per_second": None, "in_flight_bytes": IN_FLIGHT_BYTES, "gap_seconds": GAP_SECONDS,
            "patience_seconds": PATIENCE_SECONDS, "paths": paths[member.name],
        }  # fmt: skip

    answers = ask_all(members, "check.echo", params, errors, ANSWER_SECONDS)
    answered = {
        path["destination"]: size
        for name, answer in answers.items()
        for path, entry in zip(paths[name], answer["paths"], strict=False)
        if (size := of_pair(entry["flows"], mtus[name])["path_mtu_bytes"]) is not None
    }
    return {name: {**entry, "answered": answered} for name, entry in facts.items()}


def _source(case: Case, address: str) -> str | None:
    """An address of the interface in the same subnet; None for one that is not there, or only on the link."""
    if not case.is_near(address) or address.startswith("fe80:"):
        return None
    addresses = [candidate["address"] for candidate in case.told(case.interface).get("addresses", ())]
    return next((candidate for candidate in addresses if (":" in candidate) == (":" in address)), None)
