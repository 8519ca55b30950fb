"""Finds hosts that announce a smaller MSS than the way back to the others allows."""

from __future__ import annotations

from collections import defaultdict

from framegauge.check.judgement import remedies
from framegauge.check.judgement.blame_readings import MSS_HEADERS, MSS_SLACK
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import Command, Finding

__all__ = ["announced"]

MOST_COMMANDS = 4
TIMESTAMPS = 12  # bytes of the option, padded, which the kernel's MSS of a connection leaves out and that of a SYN has


def announced(case: Case) -> None:
    """`mss_clamped`: a host announces less in its SYN than its route back allows, so the others send it no more."""
    groups: dict[tuple[str, int, int], list[Pair]] = defaultdict(list)
    back = {(pair.destination, pair.source, pair.family): _allowed(pair) for pair in case.mesh.pairs}
    for pair in case.mesh.pairs:
        tcp = pair.tcp or {}
        size, route = tcp.get("peer_announced_mss_bytes"), back.get(pair.key)
        if not tcp.get("connected") or not size or not route or _is_told_by_a_tunnel(case, pair, size):
            continue
        if size + MSS_SLACK < route - MSS_HEADERS[pair.family]:
            groups[pair.destination, size, pair.family].append(pair)
    for (host, size, family), pairs in sorted(groups.items()):
        route = max(back[pair.key] or 0 for pair in pairs)
        commands = tuple(
            Command(
                f"ip route show table all to match {pair.source_address}", f"host {host}", "look for advmss", family
            )
            for pair in pairs[:MOST_COMMANDS]
            if pair.source_address is not None
        )
        syn = {_in_syn(pair, size) for pair in pairs}
        known = syn.pop() if len(syn) == 1 else None
        mss = f"{size}, or {size + TIMESTAMPS} with timestamps," if known is None else f"{known}"
        fits = (size + TIMESTAMPS if known is None else known) + MSS_HEADERS[family] - TIMESTAMPS
        text = (
            f"Host {host} announces an MSS of {mss} in its SYNs, which fits an MTU of {fits}; "
            f"its route has {route}. TCP towards it never uses the size that the path carries."
        )
        case.add(
            Finding.about(
                "mss_clamped", f"routes of host {host}", {host, *(pair.source for pair in pairs)},
                [pair.key for pair in pairs], f"{text} ({remedies.count_of(len(pairs), 'pair')}, IPv{family})", text,
                advice="An advmss of a route does that. Remove it with `ip route change` where no tunnel needs it.",
                commands=commands,
                facts=(
                    ("MSS that the host announces", f"{mss.rstrip(',')} bytes"), ("Its route MTU", f"{route} bytes"),
                ),
            )
        )  # fmt: skip


def _in_syn(pair: Pair, size: int) -> int | None:
    """The MSS in the SYN of a connection whose segments have this room: timestamps, if both ends use them, take some of
    it later. What this end announced by its own route tells whether they do; None if it does not."""
    tcp = pair.tcp or {}
    own, route = tcp.get("announced_mss_bytes"), tcp.get("route_mtu_bytes")
    if own is None or route is None:
        return None
    fixed, taken = MSS_HEADERS[pair.family], route - own
    return {fixed: size + TIMESTAMPS, fixed - TIMESTAMPS: size}.get(taken)


def _is_told_by_a_tunnel(case: Case, pair: Pair, size: int) -> bool:
    """Whether the size is what the underlay of a tunnel of the announcing host leaves, by which it takes the connection
    or answers it: the tunnel tells its kernel so, as soon as something larger is sent."""
    host = case.mesh.host(pair.destination)
    answer = case.mesh.by_key.get((pair.destination, pair.source, pair.family))
    ways = [case.mesh.receiver(pair), None if answer is None else case.mesh.sender(answer)]
    fits = set().union(*(host.leaves(tunnel) for tunnel in ways))
    return any(abs(mtu - MSS_HEADERS[pair.family] - size) <= MSS_SLACK for mtu in fits)


def _allowed(pair: Pair) -> int | None:
    """The MTU by which the kernel of its source announces an MSS: that of the route, or what the path has told it.

    None if nobody knows: the path has told it that packets are too big, and no size, so that it guesses."""
    if any(report.mtu is None for report in pair.told):
        return None
    # What TCP itself read of its route comes last: by then a tunnel of the host may have told the kernel of its limit.
    read = pair.route_mtu, pair.path_mtu, (pair.tcp or {}).get("route_mtu_bytes"), *(report.mtu for report in pair.told)
    return min((size for size in read if size is not None), default=None)
