"""The evidence of a finding as a small table: what was measured or read, for IPv4 and IPv6 side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case, hint_of
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import CATALOGUE, Finding, Row
from framegauge.check.judgement.hops import Segment

__all__ = ["table"]

_NOTES_OF_PAIRS = ("stale_path_mtu", "route_mtu_too_small", "mss_clamped", "could_not_tell", "plain_loss")
_IPV6_LEAST = 1280


def table(case: Case, parts: Sequence[Finding]) -> list[dict[str, Any]]:
    """The rows of a finding, or of the two findings (one per IP version) that are one cause."""
    columns: dict[int, dict[str, str]] = {}
    for part in parts:
        for family in sorted(part.families):
            pairs = [case.mesh.by_key[key] for key in part.pairs if key[2] == family]
            columns[family] = dict(part.facts) | dict(_rows(case, part, family, pairs))
    names = dict.fromkeys(name for column in columns.values() for name in column)
    return [{"name": name, "ipv4": _value(columns, 4, name), "ipv6": _value(columns, 6, name)} for name in names]


def _value(columns: dict[int, dict[str, str]], family: int, name: str) -> str | None:
    return columns.get(family, {}).get(name)


def _rows(case: Case, part: Finding, family: int, pairs: Sequence[Pair]) -> Iterator[Row]:
    if not CATALOGUE[part.kind].is_fault and part.kind not in _NOTES_OF_PAIRS:
        return
    yield "Affected pairs", f"{len(pairs)} of {sum(pair.family == family for pair in case.mesh.pairs)}"
    if part.kind in ("plain_loss", "could_not_tell", "unreachable", "neighbour_table_full"):
        yield "Small packets lost", f"{sum(pair.lost for pair in pairs)} of {sum(pair.sent for pair in pairs)}"
    elif CATALOGUE[part.kind].is_fault:
        yield from _of_fault(case, part, pairs)


def _of_fault(case: Case, part: Finding, pairs: Sequence[Pair]) -> Iterator[Row]:
    limits = {pair.path_mtu for pair in pairs}
    yield "Largest packet that passes", _sizes(limits)
    bad, known = sum(pair.bad for pair in pairs), sum(pair.probed - pair.unknown for pair in pairs)
    if any(pair.is_partial for pair in pairs):
        yield "Affected flows", remedies.share_text(bad, known)
    if fragmented := sum(pair.fragmented for pair in pairs):
        yield "Flows that arrive in fragments", remedies.share_text(fragmented, sum(pair.probed for pair in pairs))
    if any(pair.is_one_ended for pair in pairs):
        yield from _of_echoes(pairs)
    else:
        yield "Error returned", _errors(pairs)
        yield from _hops(case, part, pairs)
        yield "Other direction", _other_direction(case, part, pairs)
        yield "Route MTU (kernel)", _sizes({pair.route_mtu for pair in pairs})
    ends = {
        interface.mtu for pair in pairs for interface in (case.mesh.sender(pair), case.mesh.receiver(pair)) if interface
    }
    if ends and not part.facts:
        yield "MTU of the end interfaces (reading)", _sizes(ends)
    known_sizes = sorted(limit for limit in limits if limit is not None)
    if hints := [hint for limit in known_sizes if (hint := hint_of(limit, case.mesh.target))]:
        yield "This size is typical of", remedies.listing(hints)
    if known_sizes and known_sizes[0] < _IPV6_LEAST and pairs[0].family == 6:
        yield "Smallest MTU that IPv6 allows", f"{_IPV6_LEAST} bytes (RFC 8200)"


def _sizes(sizes: Iterable[int | None]) -> str:
    known = sorted({size for size in sizes if size is not None})
    if not known:
        return "not known"
    return f"{known[0]} bytes" if len(known) == 1 else f"{known[0]} to {known[-1]} bytes"


def _of_echoes(pairs: Sequence[Pair]) -> Iterator[Row]:
    pieces = {pair.reply_fragment for pair in pairs} - {None}
    if pieces:
        yield "Fragments of replies", f"up to {_sizes(pieces)}"
    announced = {(pair.tcp or {}).get("peer_announced_mss_bytes") for pair in pairs} - {None}
    if announced:
        yield "MSS that the target announces (a hint)", _sizes(announced)


def _errors(pairs: Sequence[Pair]) -> str:
    """Who refused large packets with an error, and at which size."""
    senders = set()
    for report in (report for pair in pairs for report in pair.told):
        size = "" if report.mtu is None else f", MTU {report.mtu}"
        senders.add(f"by the sender's kernel{size}" if report.address is None else f"ICMP from {report.address}{size}")
    return remedies.listing(senders, 3) or "none"


def _hops(case: Case, part: Finding, pairs: Sequence[Pair]) -> Iterator[Row]:
    """The two ends of the bad link, as traces of these pairs name them."""
    if not isinstance(part.spot, Segment):
        return
    seen = Counter(segment for pair in pairs for segment in sorted(case.segments.get(pair.key, ())))
    link = part.spot if part.spot in seen or not seen else seen.most_common(1)[0][0]
    if any(segment.ends == link.ends and segment != link for segment in seen):  # in both directions
        yield "Ends of the bad link", f"{link.after.name} and {link.before.name}"
        return
    yield "Last hop that receives large packets", link.after.name
    yield "Next hop, receives small packets only", link.before.name
    if link.hidden:
        yield "Hops between them that do not answer", str(link.hidden)


def _other_direction(case: Case, part: Finding, pairs: Sequence[Pair]) -> str:
    others = [case.mesh.by_key.get((pair.destination, pair.source, pair.family)) for pair in pairs]
    known = [other for other in others if other is not None]
    if not known:
        return "not measured"
    if all(other.verdict == "carries_target" for other in known):
        return f"carries {case.mesh.target} bytes"
    if all(other.key in part.pairs for other in known):
        return "also affected"
    sizes = {other.path_mtu for other in known}
    return "not known" if None in sizes else f"carries {_sizes(sizes)}"
