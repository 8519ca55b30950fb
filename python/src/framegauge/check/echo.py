"""The one-ended part of a path MTU check: from hosts with an agent to targets without. Never prints.

An echo comes back as large as it went, so that what comes back whole has passed both ways. What does not come back may
have been lost on either: the direction is named only where something tells it.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from framegauge.check import pairs as check_pairs
from framegauge.check.addresses import Address, Route, candidates, choose
from framegauge.check.judgement import planner
from framegauge.check.plan import (
    Asked,
    Member,
    Path,
    Prepared,
    Target,
    ask_all,
    host_rate,
    in_order,
    read_facts,
    read_routes,
)  # fmt: skip
from framegauge.errors import InputError
from framegauge.testbeds.base import Json

__all__ = ["pairs", "prepare"]

IN_FLIGHT_BYTES = 32 * 1024
GAP_SECONDS = 0.005  # between echoes to one target; many answer seldom, and where they do it grows to eight times that
PATIENCE_SECONDS = 60.0
# Above, small echoes are answered by a limit's leave, and nobody knows whether large ones are counted alike.
MOST_LOSS = 0.3
LENGTHS = {4: 32, 6: 128}


def prepare(members: Sequence[Member], targets: Sequence[Target], asked: Asked) -> Prepared:
    """Read the hosts' facts and routes, and plan; InputError if there is nothing to probe."""
    names = Counter([*(member.name for member in members), *(target.name for target in targets)])
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        raise InputError(f"check: found {repeated[0]} twice, expected each host and each target once")
    errors: dict[str, str] = {}
    facts = read_facts(members, errors)
    living = [member for member in members if member.name in facts]
    destinations = {
        member.name: [address for target in targets for address in target.addresses.values()] for member in living
    }
    routes = read_routes(living, destinations, errors)
    paths: list[Path] = []
    for member in members:
        for target in targets:
            family_paths = [_path(member, target, family, facts, routes) for family in asked.families or (4, 6)]
            paths += (known := [path for path in family_paths if path is not None])
            if not known and member.name not in errors:
                addresses = ", ".join(target.addresses.values())
                raise InputError(
                    f"{target.name}: found {addresses}, expected an address of a family that {member.name} has, too"
                )
    rates = {member.name: host_rate(facts[member.name], asked, member.name, paths) for member in living}
    slowest = min((rate for rate in rates.values() if rate is not None), default=None)
    ways = [(path.source, path.destination) for path in paths]
    # Three packets come back as large as they went.
    cost = planner.expected_cost(ways, 1, asked.target_mtu, slowest, acknowledgement_bytes=asked.target_mtu // 2)
    plan = planner.Plan("one_ended", tuple(dict.fromkeys(ways)), len(set(ways)), {name: name for name in names})
    return Prepared(members, facts, errors, plan, paths, rates, cost, targets)


def _path(
    member: Member, target: Target, family: int, facts: Mapping[str, Json], routes: Mapping[str, Mapping[str, Route]]
) -> Path | None:
    """From a host to a target; None if one of them has no address of the family."""
    address = target.addresses.get(family)
    if address is None:
        return None
    if member.name not in facts:
        return Path(member.name, target.name, family, None)
    own = candidates(facts[member.name], family, member.interface)
    ends = choose(own, [Address(address, LENGTHS[family], family, "")], routes.get(member.name, {}), {})
    return None if ends is None else Path(member.name, target.name, family, ends)


def pairs(
    prepared: Prepared, asked: Asked, false_claim: float, on_progress: Callable[[float, str], None]
) -> list[Json]:
    """All hosts at the same time; the pairs of the document."""
    token = secrets.token_hex(16)
    probed = [path for path in prepared.paths if path.ends is not None and path.ends.error is None]
    own = {member.name: [path for path in probed if path.source == member.name] for member in prepared.members}
    shares = dict.fromkeys(own, 0.0)

    def params(member: Member) -> Mapping[str, object] | None:
        if not own[member.name]:
            return None
        rate = prepared.rates[member.name]
        return {
            "token": token, "target_mtu": asked.target_mtu, "false_claim": false_claim / len(probed),
            "bits_per_second": None if rate is None else int(rate), "in_flight_bytes": IN_FLIGHT_BYTES,
            "gap_seconds": GAP_SECONDS, "patience_seconds": PATIENCE_SECONDS,
            "paths": [
                {"source": path.ends.source, "destination": path.ends.destination, "tcp_port": asked.tcp_port}
                for path in own[member.name] if path.ends is not None
            ],
        }  # fmt: skip

    def progress(name: str, share: float) -> None:
        shares[name] = share
        working = [shares[host] for host in own if own[host]]
        on_progress(sum(working) / max(1, len(working)), "sending echoes")

    answers = ask_all(prepared.members, "check.echo", params, prepared.errors, PATIENCE_SECONDS + 30.0, progress)
    results = {
        path.key: _judged(result, answer["missing"], asked)
        for name, answer in answers.items()
        for path, result in in_order(name, "check.echo", own[name], answer["paths"], prepared.errors)
    }
    return [_pair(path, results.get(path.key), asked) for path in prepared.paths]


def _pair(path: Path, result: Json | None, spec: Asked) -> Json:
    if result is None:
        return check_pairs.not_measured(path) | {"method": "one_ended", "direction": None}
    cut = {name: result[name] for name in ("reply_fragment_bytes", "fragmented_bytes", "reply_cut_bytes")}
    pair = check_pairs.measured(path, result, spec) | cut
    return pair | {"method": "one_ended", "direction": _direction(pair)}


def _direction(pair: Json) -> str | None:
    """Which way does not carry the target, as far as anything tells."""
    if pair["verdict"] == "too_small":
        # Messages are about what was sent; pieces are what came back.
        return "back" if pair["reply_fragment_bytes"] is not None and not pair["told_by"] else "out"
    if pair["verdict"] == "black_hole":
        # Echoes that come back short would fit, however small the way back is.
        return "unknown" if pair["reply_cut_bytes"] is None else "out"
    return None


def _judged(result: Json, missing: str | None, spec: Asked) -> Json:
    """Takes back what one end alone cannot say; `said` is why."""
    if missing is None and not result["flows"]:
        missing = "its host found nothing out"
    if missing is not None:
        flow = {"verdict": "unknown", "path_mtu_bytes": None}
        return result | {"flows": [flow], "said": missing}
    doubt = _doubt(result, spec)
    if doubt is None:
        return result
    return result | {"flows": [flow | {"verdict": "unknown"} for flow in result["flows"]], "said": doubt}


def _doubt(result: Json, spec: Asked) -> str | None:
    """Why a verdict is none; None if it is one."""
    verdict, controls, tcp = result["flows"][0]["verdict"], result["controls"], result["tcp"]
    if verdict == "unreachable":
        port = f"TCP port {spec.tcp_port}"
        if tcp is None and result["said"] is None:
            return (
                "no echo came back, and TCP was not tried: a filter explains that as well as a target that is not there"
            )
        if tcp is not None and (tcp["connected"] or tcp["refused"]):
            answer = "connects" if tcp["connected"] else "refuses, so that something is there"
            return f"no echo came back, but {port} {answer}: echoes are filtered, or the target answers none"
        # An error of the kernel or of a router says that nothing gets there; silence says nothing.
        if result["said"] is None and "timed out" in (tcp["error"] or ""):
            return (
                f"no echo came back, and {port} was not answered either: a filter explains that as well as a target "
                "that is not there"
            )
        return None
    if verdict == "carries_target" and result["reply_cut_bytes"] is not None:
        return (
            f"packets of {spec.target_mtu} bytes arrive, but no more than {result['reply_cut_bytes']} bytes come back: "
            "the way back was not tested"
        )
    if verdict == "black_hole" and controls["lost"] > MOST_LOSS * controls["sent"]:
        return (
            f"{controls['lost']} of {controls['sent']} small echoes were lost, as where a target limits how often it "
            "answers: the silence of large ones proves nothing"
        )
    return None
