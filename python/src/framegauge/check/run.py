"""Runs a path MTU check: hosts in, the result document out. Never prints."""

from __future__ import annotations

import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from framegauge.check import echo as check_echo, neighbours, pairs as check_pairs, tunnels
from framegauge.check.judgement import blame, planner, verdict
from framegauge.check.plan import Asked, Member, Path, Prepared, ask_all, in_order
from framegauge.testbeds.base import Json

__all__ = ["Checked", "run"]

FALSE_CLAIM = 1e-6  # the chance that anything that a check claims to be too large is not
IN_FLIGHT_BYTES = 96 * 1024
CONTROLS_A_PROBE = 1  # beside a probe that is to prove silence, and as large: one tells most for the least bytes
SMALL_BYTES = 100
TRACED_PAIRS = 8  # a host: routers limit how often they say that a packet has expired
TRACED_BACK = 2  # pairs of a host that do not fail, though their other direction does
TRACED_FLOWS = 3  # of a pair: so many that fail, and as many that do not
HOPS = 24
CLOSE_SECONDS = 1.0  # for a host that has failed, and may never answer again


@dataclass(frozen=True)
class Checked:
    """The result document, and the exit code that goes with it."""

    document: Json
    exit_code: int


def run(
    prepared: Prepared,
    asked: Asked,
    on_progress: Callable[[float, str], None] = lambda _share, _text: None,
    now: Callable[[], float] = time.monotonic,
) -> Checked:
    """Probe, trace what fails, and say what that means."""
    begun = now()
    if prepared.targets:
        pairs = check_echo.pairs(prepared, asked, FALSE_CLAIM, on_progress)
    else:
        pairs = _two_ended(prepared, asked, on_progress)
    document = _document(prepared, asked, pairs, _later(prepared, pairs), now() - begun)
    if asked.encapsulated is not None:
        document["encapsulation"] = tunnels.of_document(document, asked.encapsulated)
    document["findings"] = blame.blame(document)
    return Checked(document, verdict.exit_code(document["verdict"]))


def _two_ended(prepared: Prepared, spec: Asked, on_progress: Callable[[float, str], None]) -> list[Json]:
    """Pairs of hosts that all take part."""
    token = secrets.token_hex(16)
    errors = prepared.errors
    members = {member.name: member for member in prepared.members}
    probed = [path for path in prepared.paths if path.ends is not None and path.ends.error is None]
    ports = _serve(members, probed, token, errors, spec.patience_seconds)
    try:
        results = _search(prepared, members, probed, ports, spec, errors, on_progress)
        pairs = [_pair(path, results.get(path.key), spec) for path in prepared.paths]
        if spec.blame:
            on_progress(1.0, "looking for the link to blame")
            _trace(members, ports, pairs, spec, errors)
    finally:
        _close(members.values(), errors, spec.patience_seconds)
    return pairs


_Ports = Mapping[tuple[str, str, int], tuple[int, int]]  # by path: UDP and TCP port at the far end


def _serve(
    members: Mapping[str, Member],
    paths: Sequence[Path],
    token: str,
    errors: dict[str, str],
    patience_seconds: float,
) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Every host answers; each peer gets a port of its own."""
    callers: dict[str, dict[str, list[tuple[str, str, int]]]] = defaultdict(lambda: defaultdict(list))
    for path in paths:
        if path.ends is not None:
            callers[path.destination][path.ends.destination].append(path.key)
    # Who only asks must know the token, too.
    requests = {
        name: {
            "token": token,
            "addresses": list(callers[name]),
            "ports": max((len(keys) for keys in callers[name].values()), default=1),
        }
        for name in members
    }
    answers = ask_all(members.values(), "check.serve", lambda member: requests[member.name], errors, patience_seconds)
    ports: dict[tuple[str, str, int], tuple[int, int]] = {}
    for name, answer in answers.items():
        for endpoint in answer["endpoints"]:
            for key, port in zip(callers[name][endpoint["address"]], endpoint["ports"], strict=False):
                ports[key] = port, endpoint["tcp_port"]
    return ports


def _close(members: Iterable[Member], errors: Mapping[str, str], patience_seconds: float) -> None:
    all_members = list(members)
    ask_all(
        [member for member in all_members if member.name not in errors],
        "check.close",
        lambda _: {},
        {},
        patience_seconds,
    )
    # One that has failed may take part still: it would tell the next check of that, instead of why it fails.
    ask_all([member for member in all_members if member.name in errors], "check.close", lambda _: {}, {}, CLOSE_SECONDS)


def _search(
    prepared: Prepared,
    members: Mapping[str, Member],
    paths: Sequence[Path],
    ports: _Ports,
    spec: Asked,
    errors: dict[str, str],
    on_progress: Callable[[float, str], None],
) -> dict[tuple[str, str, int], Json]:
    """All hosts at the same time; by path, what `check.run` says of it."""
    claims = max(1, len(paths) * spec.flows)
    patience = spec.patience_seconds + 4 * (prepared.seconds or 0.0)
    own = {name: [path for path in paths if path.source == name and path.key in ports] for name in members}
    shares = dict.fromkeys(members, 0.0)

    def params(member: Member) -> Mapping[str, object] | None:
        if not own[member.name]:
            return None
        rate = prepared.rates[member.name]
        return {
            "target_mtu": spec.target_mtu, "flows": spec.flows, "exact": spec.exact,
            "false_claim": FALSE_CLAIM / claims, "bits_per_second": None if rate is None else int(rate),
            "controls_a_probe": CONTROLS_A_PROBE,
            "in_flight_bytes": IN_FLIGHT_BYTES, "patience_seconds": patience,
            "paths": [_order(path, *ports[path.key]) for path in own[member.name]],
        }  # fmt: skip

    def progress(name: str, share: float) -> None:
        shares[name] = share
        working = [shares[host] for host in members if own[host]]
        on_progress(sum(working) / max(1, len(working)), "probing")

    answers = ask_all(members.values(), "check.run", params, errors, patience + spec.patience_seconds, progress)
    return {
        path.key: result
        for name, answer in answers.items()
        for path, result in in_order(name, "check.run", own[name], answer["paths"], errors)
    }


def _order(path: Path, port: int, tcp_port: int) -> Json:
    """A path as `check.run` wants it."""
    assert path.ends is not None
    return {
        "source": path.ends.source, "destination": path.ends.destination, "port": port, "tcp_port": tcp_port,
    }  # fmt: skip


def _pair(path: Path, result: Json | None, spec: Asked) -> Json:
    """A pair between two agents, and beside it its flows."""
    if result is None:
        return check_pairs.not_measured(path) | {"method": "two_ended"}
    flows = result["flows"]
    if (result["tcp"] or {}).get("connected") and all(flow["verdict"] == "unreachable" for flow in flows):
        # Something is there: a filter of UDP, or a far end that is too busy to answer. Which, nobody knows.
        flows = [flow | {"verdict": "unknown"} for flow in flows]
        result = result | {"flows": flows, "said": result["said"] or "TCP connects, but no probe was answered"}
    return check_pairs.measured(path, result, spec) | {"method": "two_ended", "_flows": flows}


def _flows(pair: Json, verdicts: Sequence[str]) -> list[int]:
    """Source ports to trace, of flows with such verdicts."""
    return [flow["source_port"] for flow in pair["_flows"] if flow["verdict"] in verdicts][:TRACED_FLOWS]


def _orders(pairs: Sequence[Json]) -> dict[str, list[tuple[Json, int, bool]]]:
    """By host, what it traces: a pair, a source port, and whether the flow is bad.

    Of each host some pairs that fail, unless it is known who is to blame, and spread over destinations: the nearer end
    of a bad link has a name of its own for each way to it, and the ways back tell that they are one router's.
    """
    orders: dict[str, list[tuple[Json, int, bool]]] = defaultdict(list)
    known = {(pair["source"], pair["destination"], pair["family"]): pair for pair in pairs if "_flows" in pair}
    open_pairs: dict[str, list[Json]] = defaultdict(list)
    for pair in known.values():
        if pair["verdict"] in ("black_hole", "too_small") and all(report["address"] for report in pair["told_by"]):
            open_pairs[pair["source"]].append(pair)
    reached: Counter[tuple[str, int]] = Counter()
    returned: Counter[str] = Counter()
    for source, candidates in open_pairs.items():
        for _ in range(min(TRACED_PAIRS, len(candidates))):
            pair = min(candidates, key=lambda candidate: reached[candidate["destination"], candidate["family"]])
            candidates.remove(pair)
            reached[pair["destination"], pair["family"]] += 1
            bad = [(pair, port, True) for port in _flows(pair, ("black_hole", "too_small"))]
            good = [(pair, port, False) for port in _flows(pair, ("carries_target",))]
            # By turns: those at the head are traced first, and one of each kind says most.
            orders[source] += [order for both in zip_longest(bad, good) for order in both if order is not None]
            back = known.get((pair["destination"], source, pair["family"]))
            if back is not None and back["verdict"] == "carries_target" and returned[back["source"]] < TRACED_BACK:
                returned[back["source"]] += 1
                orders[back["source"]] += [(back, port, False) for port in _flows(back, ("carries_target",))]
    for pair in known.values():
        del pair["_flows"]
    return orders


def _trace(
    members: Mapping[str, Member],
    ports: _Ports,
    pairs: Sequence[Json],
    spec: Asked,
    errors: dict[str, str],
) -> None:
    """Trace flows of bad pairs, and put what was found into the pairs."""
    orders = _orders(pairs)

    def params(member: Member) -> Mapping[str, object] | None:
        if not orders[member.name]:
            return None
        traces = [
            {
                "source": pair["source_address"], "source_port": port, "destination": pair["destination_address"],
                "port": ports[pair["source"], pair["destination"], pair["family"]][0], "large_bytes": spec.target_mtu,
            }
            for pair, port, _ in orders[member.name]
        ]  # fmt: skip
        return {"hops": HOPS, "patient": True, "small_bytes": SMALL_BYTES, "traces": traces}

    answers = ask_all(members.values(), "check.trace", params, errors, 60.0)
    for name, answer in answers.items():
        for (pair, port, bad), trace in in_order(name, "check.trace", orders[name], answer["traces"], errors):
            pair["traces"].append({"source_port": port, "bad": bad, "hops": trace["hops"]})


def _later(prepared: Prepared, pairs: Sequence[Json]) -> dict[str, Json]:
    """The facts of hosts whose counters may explain something, once more: of those with a tunnel, and of those whose
    kernel had to know neighbours that nothing reached."""
    used = {(pair["source"], pair["interface"]) for pair in pairs}
    through = {
        name for name, facts in prepared.facts.items() for interface in facts["interfaces"]
        if (name, interface["name"]) in used
        and (interface.get("overhead_bytes") is not None or interface.get("kind") in tunnels.KINDS)
    }  # fmt: skip
    names = through | neighbours.witnesses(prepared, pairs)
    members = [member for member in prepared.members if member.name in names]
    later = ask_all(members, "check.facts", lambda _: {}, prepared.errors, 30.0) if members else {}
    full = neighbours.refused(prepared, later)
    return {
        member.name: {
            key: _risen(prepared.facts[member.name], later[member.name], key)
            if member.name in through & set(later) else None
            for key in ("fragments_created", "packets_reassembled")
        }
        | {"neighbours_refused": full.get(member.name)}
        for member in prepared.members
    }  # fmt: skip


def _risen(before: Json, after: Json, key: str) -> Json | None:
    """By how much a counter of a host has risen since its facts were read; None where its agent does not read it."""
    if key not in before or key not in after:
        return None
    first, last = before[key], after[key]
    return {key: 0 if None in (first[key], last[key]) else last[key] - first[key] for key in ("ipv4", "ipv6")}


def _document(
    prepared: Prepared, spec: Asked, pairs: Sequence[Json], later: Mapping[str, Json], seconds: float
) -> Json:
    hosts = []
    for member in prepared.members:
        facts = prepared.facts.get(member.name)
        used = {pair["source_address"]: None for pair in pairs if pair["source"] == member.name}
        hosts.append(
            {
                "name": member.name,
                "addresses": [address for address in used if address is not None],
                "facts": facts,
                "error": prepared.errors.get(member.name),
            }
            | later[member.name]
        )
    hosts += [
        {
            "name": target.name,
            "addresses": list(target.addresses.values()),
            "facts": None,
            "error": None,
            "fragments_created": None,
            "packets_reassembled": None,
            "neighbours_refused": None,
        }
        for target in prepared.targets
    ]
    return {
        "schema": 1,
        "target_mtu": spec.target_mtu,
        "verdict": verdict.of_check(pairs, hosts),
        "seconds": round(seconds, 3),
        "false_claim_probability": FALSE_CLAIM,
        "flows": spec.flows,
        "coverage": planner.member_coverage(spec.flows),
        "plan": prepared.plan.as_document(),
        "hosts": hosts,
        "pairs": list(pairs),
        "findings": [],
    }
