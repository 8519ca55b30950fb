"""Upper bounds of what a larger MTU brings: of goodput from the time of connections, of CPU time from packets.

A connection's time is made of three parts: this end has data that the other has not acknowledged (`busy`, TCP_INFO),
the other end has, or neither: then its programs decide, and frames change nothing. Where both have, the time counts for
the end of which more can be saved. What is left of it is told by two facts:

- Windows are counted in segments, whether they grow or are held down by losses (Mathis et al., CCR 27(3), 1997), so are
  rounds of slow start (RFC 5681), and so is what a host does per packet. A message of n segments, of which m are left,
  takes at most c = ceil(n / m) times as many rounds: as many as m segments take, c times, since no window becomes
  smaller meanwhile. How the time is spread over messages is not known, so c is that of the message that shrinks most.
- No data goes faster than the link, where its speed is known.

    time after >= idle + sum over both ends of max((busy - stalled) / c, bytes on the wire / link rate)

`stalled` is the time in which a sender may have waited for a delayed acknowledgement, as Nagle's algorithm does (RFC
896) for the first segment of a message: one that becomes one segment does not wait, so that this time may vanish whole.
Linux counts the acknowledgements that its timer sent, each at most 0.2 s late.

The gain is at most time / time after - 1. Of a connection that was not there all the time neither its own time is known
nor how much of both ends' was at the same time: then it is that of the end that gains more. With losses, a time-out may
be saved, which has nothing to do with the number of packets; and with a CPU that has no time left, connections wait for
the packets of others. Then only the link bounds what is gained. What the other end does is known only if that host is
estimated too; otherwise all time in which this end is not busy is taken for the other's, and its delayed
acknowledgements are not in the bound.

Not in it is what others do to a connection: time in which its packets wait behind theirs on a link or CPU that is busy
but not full, or in which its program waits for an answer over another connection.

The link bounds all connections of an interface together: if it is full, the gain is that of headers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.estimate.load import HEADERS, Load, after, counted_bounds, headers_of, larger_segment

__all__ = [
    "DELAYED_SECONDS",
    "FULL_CPU",
    "Gain",
    "Side",
    "connection_gain",
    "cpu_gain",
    "frames_gain",
    "goodput_gain",
    "links_gain",
    "most_rounds",
    "rounds_by_size",
    "sides",
]

Json = Mapping[str, Any]
ENOUGH = 30  # segments of a connection in a sample, by which all of them are judged
FULL_CPU = 0.95  # of its time a CPU has nothing to spare
DELAYED_SECONDS = 0.2  # an acknowledgement at most (Linux: TCP_DELACK_MAX; RFC 1122 4.2.3.2 allows 0.5 s)
FULL_LINK = 1.02  # a link that carries more is not as slow as it says: drivers of virtual NICs make their speeds up


@dataclass(frozen=True)
class Side:
    """What one end of a connection sent in an interval: when (`busy_seconds`; None if that host was not asked), what,
    in how many `segments`, and in how many at least afterwards. `rounds`: how many times as many a message takes now,
    at most; 1 if every message is one segment. `stalled_seconds`: how long it may have waited for delayed
    acknowledgements. `lost`: it has sent something again."""

    busy_seconds: float | None
    payload_bytes: int
    least: float
    rounds: int
    lost: bool
    stalled_seconds: float = 0.0
    segments: int = 0

    def wire(self, segments: float, link_bytes: int, bits_per_second: float | None) -> float:
        """The seconds that its bytes take on the link in so many segments; 0 without a known speed."""
        return (
            8 * (self.payload_bytes + segments * (HEADERS + link_bytes)) / bits_per_second if bits_per_second else 0.0
        )

    def shortest(self, seconds: float, wire_seconds: float) -> float:
        """The least that is left of some seconds of sending."""
        if self.rounds == 1 and not self.lost:
            return seconds
        left = 0.0 if self.lost else max(0.0, seconds - self.stalled_seconds) / self.rounds
        return min(seconds, max(left, wire_seconds))

    def knees(self, wire_seconds: float) -> tuple[float, float]:
        """Of so many seconds the wire begins to be all that is left, and ends to be."""
        return wire_seconds, self.stalled_seconds + self.rounds * wire_seconds


@dataclass(frozen=True)
class Gain:
    """An upper bound, as a share (0.05: 5 %; inf: nothing bounds it), and the bytes for which it holds."""

    at_most: float
    payload_bytes: int


def most_rounds(way: Json, full_bytes: int, larger_bytes: int) -> int:
    """Of the messages of a direction in a sample, how many times as many segments one of them takes now as with larger
    ones, rounded up, at most."""
    rounds = 1
    for message in way["messages"]:
        before = message["full"] + (message["end_bytes"] > 0)
        after = -(-(message["full"] * full_bytes + message["end_bytes"]) // larger_bytes)
        rounds = max(rounds, -(-before // max(1, after)))
    return max(rounds, -(-larger_bytes // full_bytes)) if way["more_messages"] else rounds


def rounds_by_size(readings: Json, target: int) -> dict[int, dict[str, int]]:
    """`most_rounds` of the sampled connections of a host, by the payload of their full segments, then by direction. A
    connection is told with the last size that it had, and may have had any other before: all sizes have the most."""
    by_size: dict[int, dict[str, int]] = {}
    mtus = {interface["interface"]: interface["mtu"] for interface in readings["interfaces"]}
    for part in (readings["sample"] or {"interfaces": []})["interfaces"]:
        mtu = mtus[part["interface"]]
        for way in part["ways"]:
            size = way["full_bytes"]
            known = by_size.setdefault(size, {"sent": 1, "received": 1})
            larger = larger_segment(mtu, size, target, headers_of(part, mtu))
            for name in known if size else ():
                known[name] = max(known[name], most_rounds(way[name], size, larger))
    most = {name: max((known[name] for known in by_size.values()), default=1) for name in ("sent", "received")}
    return {size: most if size else known for size, known in by_size.items()}


def sides(
    connection: Json, sampled: Json | None, place: int, mtu: int, target: int, rounds: Mapping[str, int]
) -> tuple[Side, Side]:
    """What this end sent and what it received. `sampled`: the same connection in the sample, where it was seen; `place`
    is that of the target among its MTUs; `rounds`: `most_rounds` of both directions of the sampled connections with
    segments like these."""
    both_sides = []
    more, size = max(0, target - mtu), connection["mss_bytes"]
    for name in ("sent", "received"):
        segments, payload = connection[f"data_segments_{name}"], connection[f"{name}_bytes"]
        seen = sampled[name] if sampled is not None else None
        if seen is not None and seen["segments"] >= ENOUGH:
            least = segments * seen["after"][place] / seen["segments"]
            most = max(2, rounds[name]) if seen["after"][place] < seen["segments"] else 1
        else:
            least = _least(segments, payload, size, more)
            most = -(-(size + more) // size) if least < segments else 1
        busy = connection["busy_seconds"] if name == "sent" else None
        lost = name == "sent" and connection["retransmitted_bytes"] > 0
        both_sides.append(Side(busy, payload, least, most, lost, segments=segments))
    return both_sides[0], both_sides[1]


def _least(segments: int, payload: int, size: int, more: int) -> float:
    """The least number of segments that are `more` bytes larger, from counts alone."""
    if not segments or not more or not size:
        return float(segments)
    _, full = counted_bounds(segments, min(max(payload, segments), segments * size), size)
    return float(max(payload / (size + more), segments - full, 1))


def connection_gain(
    seconds: float,
    throughout: bool,
    ends: tuple[Side, Side],
    link_bytes: int,
    bits_per_second: float | None,
    cpu_is_full: bool = False,
) -> Gain:
    """How much more a connection may deliver. `ends`: this one and the other, which has no `busy_seconds` if it was not
    asked; `link_bytes`: what a packet takes on the wire in addition (Ethernet, preamble, gap); `cpu_is_full`: with
    packets that can be saved."""
    this_end, other = ends
    busy = min(seconds, this_end.busy_seconds or 0.0)
    other_busy = min(seconds, seconds if other.busy_seconds is None else other.busy_seconds)
    wires = [
        _on_link(side, sending, link_bytes, bits_per_second)
        for side, sending in zip(ends, (busy, other_busy), strict=True)
    ]
    if cpu_is_full:
        whole = seconds if throughout else min(seconds, busy + other_busy)
        times = _times(whole, min(whole, max(wires)))
    elif throughout:
        times = _times(seconds, _least_left(seconds, ends, (busy, other_busy), wires))
    else:
        # It was there for as long as an end was busy, for all that is known, and both may have been at the same time.
        times = max(
            _times(busy, this_end.shortest(busy, wires[0])), _times(other_busy, other.shortest(other_busy, wires[1]))
        )
    return Gain(max(0.0, times - 1), this_end.payload_bytes + other.payload_bytes)


def _on_link(side: Side, busy: float, link_bytes: int, bits_per_second: float | None) -> float:
    """The seconds on the link that are left of an end at least. What came in an interval may take a little longer than
    that on the link, for some was under way when it began; then headers can be saved all the same."""
    least = side.wire(side.least, link_bytes, bits_per_second)
    before = side.wire(max(side.segments, side.least), link_bytes, bits_per_second)
    return least * busy / before if 0 < busy < before else least


def _times(before: float, after: float) -> float:
    return before / after if after > 0 else math.inf if before > 0 else 1.0


def _least_left(seconds: float, ends: tuple[Side, Side], busy: tuple[float, float], wires: Sequence[float]) -> float:
    """The least that is left of an interval. What is left of the time of an end is linear between its knees, and the
    time in which both are busy is the one's or the other's, so that one of them, or an end of what is possible, has the
    least."""
    both = max(0.0, sum(busy) - seconds)
    idle = max(0.0, seconds - sum(busy))
    knees = [busy[0] - both, busy[0], *ends[0].knees(wires[0])]
    knees += [seconds - idle - knee for knee in ends[1].knees(wires[1])]
    totals = []
    for first in (min(max(knee, busy[0] - both), busy[0]) for knee in knees):
        second = min(busy[1], seconds - idle - first)
        totals.append(idle + ends[0].shortest(first, wires[0]) + ends[1].shortest(second, wires[1]))
    return min(totals)


def goodput_gain(gains: Iterable[Gain]) -> float:
    """Of connections together: each carries its share of the bytes. Connections without a byte do not count."""
    known = [gain for gain in gains if gain.payload_bytes]
    total = sum(gain.payload_bytes for gain in known)
    return sum(gain.payload_bytes / total * gain.at_most for gain in known) if total else 0.0


def wire(load: Load, target: int, link_bytes: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bytes on the wire of the sampled packets, sent and received: before, and at least after."""
    totals = []
    saved = _saved(load, target)
    for place in (0, 1):
        before = load.bytes[place] + link_bytes * load.packets[place]
        totals.append((before, before - saved[place] * (link_bytes + load.header_bytes)))
    return totals[0], totals[1]


def _saved(load: Load, target: int) -> tuple[float, float]:
    """Sampled packets that are saved at most, sent and received: all of them may be of one direction, but not more than
    its full segments and acknowledgements leave."""
    result = after(load, target)
    most = (result.before - result.least) / load.times
    bounds = []
    for place in (0, 1):
        bound = 0.0
        for group in load.groups:
            # Of what is possible, that with most full segments.
            best_way = max(
                (ways[place] for ways in group.possible), key=lambda way: way.payloads.get(group.full_bytes, 0)
            )
            full = best_way.payloads.get(group.full_bytes, 0)
            _, merged = (best_way.merged or {}).get(group.larger(target), (0, 0))
            bound += full * (1 - group.full_bytes / group.larger(target)) + best_way.acknowledgements + merged
        bounds.append(min(bound, most))
    return bounds[0], bounds[1]


def frames_gain(loads: Sequence[Load], target: int, link_bytes: int) -> float:
    """What headers alone give, where the link is the limiter: of the interface that gains most, in the direction that
    may be the limiter, which is the fuller one or not much emptier."""
    shares = [0.0]
    for load in loads:
        ways = wire(load, target, link_bytes)
        fullest = max(before for before, _ in ways)
        shares += [before / least - 1 for before, least in ways if least > 0 and before >= fullest / 2]
    return max(shares)


def links_gain(
    loads: Sequence[Load], speeds: Mapping[str, float | None], seconds: float, target: int, link_bytes: int
) -> float | None:
    """What the links have room for if the load stays as it is and only grows: of each interface by its fuller
    direction, weighted by payload; None without a speed that can be true."""
    total = weighted = 0.0
    for load in loads:
        speed = speeds.get(load.interface)
        payload = sum(load.payload) * load.times
        before, least = max(wire(load, target, link_bytes))
        used = 8 * before * load.times / seconds
        if not speed or used > FULL_LINK * speed or not (used > 0 < least):
            return None
        total += payload
        # A link that seems to carry more than it can is full, and headers can be saved all the same.
        weighted += payload * (max(1.0, speed / used) * before / least - 1)
    return weighted / total if total else None


def cpu_gain(readings: Json, loads: Sequence[Load], target: int) -> float:
    """The share of the CPU time in use that is saved at most. Softirqs and interrupts shrink with packets, and the rest
    of the kernel's time with aggregates, which are never more than the packets that are left."""
    states = [{name: cpu[name] for name in cpu if name != "cpu"} for cpu in readings["cpu"]["cpus"]]
    used = sum(sum(state.values()) - state["idle"] - state["iowait"] - state["steal"] for state in states)
    if used <= 0:
        return 0.0
    before = least = merged = 0.0
    for load in loads:
        result = after(load, target)
        before, least = before + result.before, least + result.least
        seen = sum(load.aggregates) * load.times if load.aggregates is not None else result.before
        merged += max(0.0, seen - result.least)
    if not before:
        return 0.0
    softirq = sum(state["softirq"] + state["irq"] for state in states)
    system = sum(state["system"] for state in states)
    return max(0.0, float((softirq * (1 - least / before) + system * merged / before) / used))
