"""What senders leave unknown of segments and acknowledgements: small windows, losses, data both ways at once.

A sender cuts segments to half of the largest window that it was offered (`tcp_bound_to_half_wnd`, net/ipv4/tcp.c of the
kernel; RFC 9293 section 3.8.6.2.1 has both ends avoid small ones). So where a receiver's window held a sender up and
was a few of the larger segments, these are not full. TCP_INFO tells of a sender how long that was so, and, from its
rate and round trip, how much it had under way then: no more than the window, and at least half of it where the window
was the limit for long. By these factors segments have a quarter of it at least.

Where a connection carries messages of several segments both ways at once, an acknowledgement goes with data or alone as
it happens: none may be alone, or one for each segment that its program reads by itself. And what was sent again may not
have to be, nor be acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Narrow", "Sender", "Senders", "again_share", "both_ways", "narrow", "senders"]

Json = Mapping[str, Any]
LIMITED = 0.1  # of its busy time a sender was held up by the window: else another limit counts
PART = 4  # half of the window is a segment's limit, and half of it is under way in the mean at least


@dataclass(frozen=True)
class Narrow:
    """The share of a direction's segments whose windows may be too small for larger ones, and how many bytes those
    segments have at least."""

    share: float
    segment_bytes: float


@dataclass(frozen=True)
class Sender:
    """What a host knows of a connection's data that it sent: what it sent again, and how much was under way where the
    receiver's window was the limit; None: another limit counts."""

    again_bytes: int
    under_way_bytes: float | None


Senders = Mapping[tuple[str, str], Sender]  # by their end and the other


def senders(all_readings: Iterable[Json]) -> Senders:
    """Of all connections of all hosts."""
    known = {}
    for readings in all_readings:
        for connection in readings["connections"]:
            busy = connection["busy_seconds"]
            is_limit = busy > 0 and connection["receiver_limited_seconds"] >= LIMITED * busy
            under_way = connection["sent_bytes"] / busy * connection["srtt_seconds"] if is_limit else None
            known[connection["local"], connection["remote"]] = Sender(connection["retransmitted_bytes"], under_way)
    return known


def again_share(readings: Json, known: Senders) -> float:
    """The share of a host's payload, sent and received, that was sent again."""
    again = payload = 0
    for connection in readings["connections"]:
        ends = connection["local"], connection["remote"]
        payload += connection["sent_bytes"] + connection["received_bytes"]
        again += sum(known[way].again_bytes for way in (ends, ends[::-1]) if way in known)
    return min(1.0, again / payload) if payload else 0.0


def narrow(readings: Json, known: Senders, direction: str, full_bytes: int, larger_bytes: int) -> Narrow | None:
    """Of the connections with such full segments in a direction, "sent" or "received"; None: no window is too small."""
    all_segments = segments = 0
    least = float(larger_bytes)
    for connection in readings["connections"]:
        if connection["mss_bytes"] != full_bytes:
            continue
        count = connection[f"data_segments_{direction}"]
        ends = connection["local"], connection["remote"]
        sender = known.get(ends if direction == "sent" else ends[::-1])
        all_segments += count
        if sender and sender.under_way_bytes is not None and sender.under_way_bytes < PART * larger_bytes:
            segments += count
            least = min(least, sender.under_way_bytes / PART)
    return Narrow(segments / all_segments, max(float(full_bytes), least)) if segments else None


def both_ways(connections: Iterable[Json], full_bytes: int) -> float:
    """The share of a sample's segments that are of messages of several segments, where as many passed the other way in
    the same connection. A connection is told with the last size that it had: of a size that no connection has any more,
    all of them may have been."""
    mutual = whole = 0
    connections = list(connections)
    alike = [connection for connection in connections if connection["full_bytes"] == full_bytes]
    for connection in alike or connections:
        sides = connection["sent"], connection["received"]
        whole += sum(side["segments"] for side in sides)
        mutual += 2 * min(side["segments"] - side["messages"] for side in sides)
    return max(0.0, mutual / whole) if whole else 0.0
