"""What one end alone can tell about paths to targets without an agent, and what it cannot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import Finding

__all__ = ["doubts", "faults"]

_BOTH_ENDS = "Run an agent at the far end: `framegauge check HOST HOST` measures each direction separately."
# Echoes are no TCP: a filter may drop large ones alone, and a route of their size would be the first thing to harm TCP.
_ECHOES_ONLY = (
    "Of TCP this proves nothing: if packets are lost by their size, connections that send full-size segments stall; a "
    "filter that drops large echoes alone looks the same."
)
_TRY = "See whether a large transfer by TCP to the target gets through before any route or MTU is changed."


def _listed(pairs: Iterable[Pair]) -> str:
    return remedies.listing(f"{pair.source} to {pair.destination} (IPv{pair.family})" for pair in pairs)


def _hosts(pairs: Iterable[Pair]) -> list[str]:
    return [name for pair in pairs for name in (pair.source, pair.destination)]


def _senders(pairs: Iterable[Pair]) -> str:
    return remedies.host_names(pair.source for pair in pairs)


def faults(case: Case) -> None:
    """`direction_unknown`, `reply_fragmented`, black holes with a known direction, and `unreachable`.

    First of all causes: a path that was seen from one end must not count as seen from both, for or against any host.
    """
    groups: dict[tuple[str, int | None], list[Pair]] = defaultdict(list)
    for pair in case.mesh.pairs:
        if not pair.is_one_ended:
            continue
        if pair.verdict == "black_hole":
            groups["direction_unknown" if pair.direction == "unknown" else "black_hole", pair.path_mtu].append(pair)
        elif pair.verdict == "too_small" and pair.direction == "back":
            groups["reply_fragmented", pair.path_mtu].append(pair)
        elif pair.key in case.unreachable:
            groups["unreachable", None].append(pair)
    for (kind, limit), pairs in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or -1)):
        _MAKERS[kind](case, limit, pairs)


def _up_to(limit: int | None) -> str:
    return "small packets" if limit is None else f"packets of up to {limit} bytes"


def _silent(case: Case, limit: int | None, pairs: Sequence[Pair]) -> None:
    where = f"unknown link, in either direction: {_listed(pairs)}"
    first = f"{'Small echoes' if limit is None else f'Echoes of up to {limit} bytes'} return, larger ones do not."
    evidence = [first, "Either the request or the reply may be lost.", *_hints(pairs), *_readings(case, pairs)]
    summary = f"{first} Either the request or the reply is lost; one end alone cannot tell which. {_ECHOES_ONLY}"
    _add(case, "direction_unknown", where, pairs, evidence, summary, f"{_BOTH_ENDS} {_TRY}")


def _towards(case: Case, limit: int | None, pairs: Sequence[Pair]) -> None:
    where = f"unknown link, towards the target: {_listed(pairs)}"
    evidence = [
        f"The target answers {_up_to(limit)}, but no larger ones. Its replies are truncated and would fit any return "
        "path, so the path towards the target is too small, or a filter there drops large echoes.",
        *_hints(pairs), *_readings(case, pairs),
    ]  # fmt: skip
    _add(case, "black_hole", where, pairs, evidence, f"{evidence[0]} {_ECHOES_ONLY}", f"{_BOTH_ENDS} {_TRY}")


def _pieces(case: Case, limit: int | None, pairs: Sequence[Pair]) -> None:
    where = f"{_listed(pairs)}, on the return path"
    pieces = remedies.listing(str(pair.reply_fragment) for pair in pairs if pair.reply_fragment is not None)
    above = "Large echoes" if limit is None else f"Echoes above {limit} bytes"
    evidence = [
        f"{above} return in fragments of up to {pieces or 'an unknown number of'} bytes. Requests cannot be "
        "fragmented, so they arrived whole: the return path is too small, or the target's own interface or route is.",
        *_hints(pairs),
    ]  # fmt: skip
    summary = evidence[0]
    if any(pair.largest_in_pieces is not None and pair.largest_in_pieces < case.mesh.target for pair in pairs):
        second = f"No echo of {case.mesh.target} bytes returned at all: there is a second limit in either direction."
        evidence.append(second)
        summary += f" {second}"
    advice = f"If the target's own interface is too small, raise its MTU to {case.mesh.target}. {_BOTH_ENDS}"
    _add(case, "reply_fragmented", where, pairs, evidence, summary, advice)


def _gone(case: Case, _limit: int | None, pairs: Sequence[Pair]) -> None:
    reasons = sorted({pair.said for pair in pairs if pair.said})
    evidence = ["No echo of any size returned.", *(f"{remedies.sentence(reason)}." for reason in reasons)]
    if any(pair.tcp is not None for pair in pairs):
        evidence.append("TCP was not answered, either.")
    case.add(
        Finding.about(
            "unreachable", _listed(pairs), _hosts(pairs), [pair.key for pair in pairs], " ".join(evidence),
            " ".join(evidence), advice="Make sure that no firewall drops ICMP echo and TCP on the path.",
            commands=remedies.show_routes(pairs),
            ask="Is there a route in both directions, and does a filter drop ICMP echo?",
        )
    )  # fmt: skip


_MAKERS = {
    "direction_unknown": _silent,
    "black_hole": _towards,
    "reply_fragmented": _pieces,
    "unreachable": _gone,
}


def _add(
    case: Case, kind: str, where: str, pairs: Sequence[Pair], evidence: Sequence[str], summary: str, advice: str
) -> None:
    keys = [pair.key for pair in pairs]
    hosts = _hosts(pairs)
    ask = (
        f"What is the MTU of each link between {remedies.host_names(hosts)}? Each must carry IP packets of "
        f"{case.mesh.target} bytes."
    )
    case.add(
        Finding.about(kind, where, hosts, keys, " ".join(evidence), summary, advice=advice, ask=ask),
        keys,
    )


def _hints(pairs: Iterable[Pair]) -> list[str]:
    """What the target announces to TCP: it may be its own MTU, or a clamp on the path."""
    sizes = {(pair.tcp or {}).get("peer_announced_mss_bytes") for pair in pairs} - {None}
    if not sizes:
        return []
    announced = remedies.listing(map(str, sizes))
    return [f"To TCP the target announces an MSS of {announced}: a hint at its own MTU, not proof."]


def _readings(case: Case, pairs: Iterable[Pair]) -> list[str]:
    ends = {(pair.source, case.mesh.sender(pair)) for pair in pairs}
    read = {
        f"{interface.name} of {name} has an MTU of {interface.mtu}" for name, interface in ends if interface is not None
    }
    return [f"{remedies.listing(read)}."] if read else []


def doubts(case: Case) -> None:
    """`could_not_tell` with what is known instead, and `plain_loss` of echoes."""
    gone = {host.name for host in case.mesh.hosts.values() if host.error}
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in case.mesh.pairs:
        if pair.is_one_ended and pair.verdict == "unknown" and pair.source not in gone:
            groups[pair.said or f"{pair.lost} of {pair.sent} small echoes were lost"].append(pair)
    for reason, pairs in sorted(groups.items()):
        best = max(pair.carried for pair in pairs)
        known = f" The largest size known to pass in both directions is {best} bytes." if best > 0 else ""
        evidence = f"{remedies.sentence(reason)}.{known}"
        case.add(
            Finding.about(
                "could_not_tell", _listed(pairs), _hosts(pairs), [pair.key for pair in pairs], evidence, evidence,
                advice=f"Remove the cause named above. Or: {_BOTH_ENDS[0].lower()}{_BOTH_ENDS[1:]}",
            )
        )  # fmt: skip
    lossy = [
        pair for pair in case.mesh.pairs
        if pair.is_one_ended and pair.lost and pair.sent and pair.verdict not in ("unreachable", "unknown")
    ]  # fmt: skip
    if lossy:
        lost, sent = sum(pair.lost for pair in lossy), sum(pair.sent for pair in lossy)
        evidence = (
            f"{lost} of {sent} small echoes ({lost / sent:.1%}) did not return: packets are lost in one of the "
            "directions, or the target limits how often it answers. Neither is an MTU problem; the verdicts account "
            "for it."
        )
        case.add(
            Finding.about(
                "plain_loss", _listed(lossy), [], [pair.key for pair in lossy], evidence, evidence,
                advice="Check the target's rate limit for ICMP.", commands=remedies.show_errors(_senders(lossy)),
                ask="Do errors or drops rise on the ports in between, and is ICMP rate-limited there?",
            )
        )  # fmt: skip
