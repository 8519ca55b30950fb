"""What one end alone can say of paths to targets without an agent, and what it cannot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import Finding

__all__ = ["doubts", "faults"]

_BOTH_ENDS = "run an agent at the far end to know: framegauge check HOST HOST measures each direction by itself"


def _listed(pairs: Iterable[Pair]) -> str:
    return remedies.listing(f"{pair.source} to {pair.destination} (IPv{pair.family})" for pair in pairs)


def _hosts(pairs: Iterable[Pair]) -> list[str]:
    return [name for pair in pairs for name in (pair.source, pair.destination)]


def faults(case: Case) -> None:
    """`direction_unknown`, `reply_fragmented` and what is silent but has a direction; `unreachable`.

    First of all causes: what one end has seen of a path must not count as seen from both, for or against any host.
    """
    groups: dict[tuple[str, int | None], list[Pair]] = defaultdict(list)
    for pair in case.mesh.pairs:
        if not pair.is_one_ended:
            continue
        if pair.verdict == "black_hole":
            groups["direction_unknown" if pair.direction == "unknown" else "black_hole", pair.path_mtu].append(pair)
        elif pair.verdict == "too_small" and pair.direction == "back":
            groups["reply_fragmented", pair.path_mtu].append(pair)
        elif pair.verdict == "unreachable":
            groups["unreachable", None].append(pair)
    for (kind, limit), pairs in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or -1)):
        _MAKERS[kind](case, limit, pairs)


def _silent(case: Case, limit: int | None, pairs: Sequence[Pair]) -> None:
    where = f"unknown, on the way there or back; known is {_listed(pairs)}"
    evidence = [
        f"Echoes of up to {limit} bytes come back, larger ones do not. Either way may have lost them: the request's "
        "or the reply's.",
        *_hints(pairs), *_readings(case, pairs),
    ]  # fmt: skip
    _add(case, "direction_unknown", where, pairs, evidence, f"{_BOTH_ENDS}; {remedies.work_around(limit)}")


def _towards(case: Case, limit: int | None, pairs: Sequence[Pair]) -> None:
    where = f"unknown, on the way there; known is {_listed(pairs)}"
    evidence = [
        f"Packets of up to {limit} bytes are answered, larger ones are not. The answers are cut short and would fit "
        "however small the way back is: it is the way to the target.",
        *_hints(pairs), *_readings(case, pairs),
    ]  # fmt: skip
    _add(case, "black_hole", where, pairs, evidence, remedies.work_around(limit))


def _pieces(case: Case, limit: int | None, pairs: Sequence[Pair]) -> None:
    where = f"{_listed(pairs)}, on the way back"
    pieces = remedies.listing(str(pair.reply_fragment) for pair in pairs if pair.reply_fragment is not None)
    evidence = [
        f"Echoes above {limit} bytes come back in pieces of up to {pieces}. The requests cannot be cut, so they have "
        "arrived whole: the way back is smaller, or the target's own interface or route is.",
        *_hints(pairs),
    ]  # fmt: skip
    if any(pair.largest_in_pieces is not None and pair.largest_in_pieces < case.mesh.target for pair in pairs):
        evidence.append(
            f"Of {case.mesh.target} bytes nothing came back at all: a second limit lies on the way there or back."
        )
    own = f"ip link set dev IFACE mtu {case.mesh.target}  # at the target, if its interface is what is smaller"
    _add(case, "reply_fragmented", where, pairs, evidence, f"{own}; {_BOTH_ENDS}")


def _gone(case: Case, _limit: int | None, pairs: Sequence[Pair]) -> None:
    reasons = sorted({pair.said for pair in pairs if pair.said})
    evidence = ["No echo of any size came back.", *(f"{remedies.sentence(each)}." for each in reasons)]
    if any(pair.tcp is not None for pair in pairs):
        evidence.append("TCP was not answered, either.")
    case.add(
        Finding.about(
            "unreachable", _listed(pairs), _hosts(pairs), [pair.key for pair in pairs], " ".join(evidence),
            "ip route get ADDRESS  # on the sender; and see that no firewall drops ICMP echo and TCP between them",
            "Is there a route both ways, and does a filter drop ICMP echo?",
        )
    )  # fmt: skip


_MAKERS = {
    "direction_unknown": _silent,
    "black_hole": _towards,
    "reply_fragmented": _pieces,
    "unreachable": _gone,
}


def _add(case: Case, kind: str, where: str, pairs: Sequence[Pair], evidence: Sequence[str], fix: str) -> None:
    keys = [pair.key for pair in pairs]
    hosts = _hosts(pairs)
    ask = (
        f"Which MTU has each link between {remedies.host_names(hosts)}? All must carry IP packets of "
        f"{case.mesh.target} bytes."
    )
    case.add(Finding.about(kind, where, hosts, keys, " ".join(evidence), fix, ask), keys)


def _hints(pairs: Iterable[Pair]) -> list[str]:
    """What the target announces to TCP: it may be its own MTU, or a clamp on the way."""
    sizes = {(pair.tcp or {}).get("peer_announced_mss_bytes") for pair in pairs} - {None}
    if not sizes:
        return []
    announced = remedies.listing(map(str, sizes))
    return [f"To TCP the target announces an MSS of {announced}: a hint at what it takes in, no proof."]


def _readings(case: Case, pairs: Iterable[Pair]) -> list[str]:
    found = {(pair.source, case.mesh.sender(pair)) for pair in pairs}
    said = {f"{each.name} of {name} says {each.mtu}" for name, each in found if each is not None}
    return [f"{remedies.listing(said)}."] if said else []


def doubts(case: Case) -> None:
    """`could_not_tell` with what is known instead, and `plain_loss` of echoes."""
    gone = {host.name for host in case.mesh.hosts.values() if host.error}
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in case.mesh.pairs:
        if pair.is_one_ended and pair.verdict == "unknown" and pair.source not in gone:
            groups[pair.said or f"{pair.lost} of {pair.sent} small echoes were lost"].append(pair)
    for said, pairs in sorted(groups.items()):
        best = max(pair.carried for pair in pairs)
        known = f" The most that is known to pass both ways: {best}." if best > 0 else ""
        case.add(
            Finding.about(
                "could_not_tell", _listed(pairs), _hosts(pairs), [pair.key for pair in pairs],
                f"{remedies.sentence(said)}.{known}", f"mend what is named, or {_BOTH_ENDS}",
            )
        )  # fmt: skip
    lossy = [
        pair for pair in case.mesh.pairs
        if pair.is_one_ended and pair.lost and pair.sent and pair.verdict not in ("unreachable", "unknown")
    ]  # fmt: skip
    if lossy:
        lost, sent = sum(pair.lost for pair in lossy), sum(pair.sent for pair in lossy)
        case.add(
            Finding.about(
                "plain_loss", _listed(lossy), [], [pair.key for pair in lossy],
                f"{lost} of {sent} small echoes ({lost / sent:.1%}) did not come back: loss on either way, or a target "
                "that limits how often it answers. Neither is an MTU: verdicts allow for it.",
                "ip -s link show; ethtool -S IFACE  # on the sender; and the target's limits on ICMP",
                "Do errors or drops rise on the ports in between, and is ICMP limited there?",
            )
        )  # fmt: skip
