"""Whether every datagram of QUIC is accounted for, and has the size that its discovery of path MTUs says. Record in,
lines out.

An end counts its datagrams by their size as it hands them to the kernel, and the fabric every frame that it reads from
a host: the two must agree in number and in bytes, so that sizes are those on the wire. What the application wrote must
be what the other end took in. The path MTU that discovery settled at is a finding, not a condition: behind a smaller
link it is smaller than the hosts'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framegauge.evidence.nic import deltas, fabric_hosts, overlay_bytes
from framegauge.networks.fragments import IP_BYTES, UDP_BYTES
from framegauge.testbeds.base import Conditions, Json

__all__ = ["BASE_BYTES", "discovery_failures", "quic_failures", "readings", "unproved_discovery"]

BASE_BYTES = 1200  # of datagrams without discovery, which every path must carry (RFC 9000 section 14)
FRAME_BYTES = 18  # Ethernet header and FCS
FCS_BYTES = 4
STEP_BYTES = 20  # at which a search ends: quinn's `minimum_change`
BULK_DATAGRAMS = 100  # from so many full ones on, some are handed over together
SETTLED_SHARE = 0.5  # of the bytes that a sender had to send at the settled size, for a figure to be that size's


def quic_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """Balances that do not close; nothing of another workload. On hosts that others use, only the ends' own counts."""
    counts = record["workload"].get("quic")
    if counts is None:
        return
    written, served = counts["written_bytes"], counts["served_bytes"]
    if not written == counts["confirmed_bytes"] == served:
        text = f"{counts['confirmed_bytes']} confirmed, {served} taken in by {counts['server']}"
        yield f"bytes that {counts['client']} wrote to QUIC: {written} is not what was delivered: {text}"
    if not conditions.capabilities.is_private:
        return
    for name, end in counts["ends"].items():
        kernel = _udp(record, name, "OutDatagrams")
        if kernel != end["calls"]:
            calls = end["calls"]
            yield f"calls of QUIC that the kernel of {name} took: {kernel} is not the number that it made: {calls}"
    for fabric_host in fabric_hosts(record):
        end, host = counts["ends"].get(fabric_host["host"]), fabric_host["host"]
        # Of what a ring had no room for nobody knows the sizes; `fidelity` has its say about such a run.
        if end is not None and not deltas(record, host, "interface").get("tx_dropped"):
            yield from _on_the_wire(conditions, record, fabric_host, end)


def _on_the_wire(conditions: Conditions, record: Json, fabric_host: Json, end: Json) -> Iterator[str]:
    """Failures of the frames of one end, which carry its datagrams and a few messages of ICMP."""
    name = fabric_host["host"]
    around = _headers(conditions) + FRAME_BYTES + overlay_bytes(record, name)
    frames, amount = _count(end), sum(count * (size + around) for size, count in end["sizes"])
    wire_bytes = fabric_host["read_bytes"] + FCS_BYTES * fabric_host["read_frames"]
    other_frames = fabric_host["read_frames"] - frames
    slack = other_frames * (max(conditions.sent_mtus(name)) + FRAME_BYTES)
    if other_frames < 0:
        yield f"frames of {name}: {fabric_host['read_frames']} is less than its datagrams of QUIC: {frames}"
    elif not amount <= wire_bytes <= amount + slack:
        yield f"bytes of the frames of {name}: {wire_bytes} is not that of its datagrams of QUIC: {amount}"


def discovery_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the sizes of datagrams by the path MTU that was looked for, and in how they were handed over."""
    counts = record["workload"].get("quic")
    if counts is None:
        return
    for name, end in counts["ends"].items():
        headers = _headers(conditions) + overlay_bytes(record, name)
        largest = max((size for size, _ in end["sizes"]), default=0)
        settled = max(end["settled_bytes"], default=0)
        limit = max(conditions.sent_mtus(name)) - headers
        highest = max(largest, settled)
        if highest > limit:
            yield f"datagrams of QUIC of {name}: expected at most {limit} bytes at this MTU, found {highest}"
        if settled > max(largest, BASE_BYTES):
            yield f"settled path MTU of {name}: {settled} bytes is more than any datagram that it sent: {largest}"
        if conditions.plpmtud is False and highest > BASE_BYTES:
            yield f"datagrams of QUIC of {name} without discovery: expected at most {BASE_BYTES} bytes, found {highest}"
        count, calls = _count(end), end["calls"]
        if counts["gso"] is False and calls != count:
            yield f"datagrams of QUIC of {name} with GSO off: expected one a call, found {count} in {calls}"
        if counts["gro"] is False and end["received_aggregates"]:
            yield f"aggregates that QUIC of {name} took in with GRO off: found {end['received_aggregates']}"
    sender = counts["ends"][counts["client"]]
    full = sum(count for size, count in sender["sizes"] if size >= max(sender["settled_bytes"], default=0))
    if counts["gso"] and full >= BULK_DATAGRAMS and sender["calls"] == _count(sender):
        yield f"datagrams of QUIC of {counts['client']} with GSO on: expected several a call, found one"


def unproved_discovery(conditions: Conditions, record: Json) -> Iterator[str]:
    """That the figures of a run are hardly those of the MTU, where discovery ended below it, or late."""
    counts = record["workload"].get("quic")
    if counts is None or conditions.plpmtud is False:
        return
    client, end = counts["client"], counts["ends"][counts["client"]]
    path = min(conditions.mtus(name)[-1] for name in (client, counts["server"])) - overlay_bytes(record, client)
    settled, share = min(end["settled_bytes"], default=0) + _headers(conditions), _share_at_settled(end)
    if settled + STEP_BYTES <= path:
        yield f"MTU {path} in use: QUIC's discovery ended at packets of {settled} bytes"
    elif share is not None and share < SETTLED_SHARE:
        yield f"MTU {path} in use: QUIC sent {share:.0%} of its bytes in packets of the {settled} that it settled at"


def readings(record: Json) -> Json:
    """What the sender's discovery settled at, and how it sent, for the line of a run."""
    counts = record["workload"].get("quic")
    if counts is None:
        return {}
    end = counts["ends"][counts["client"]]
    number, amount = _count(end), sum(size * count for size, count in end["sizes"])
    headers = _headers_of(record)
    same = ("probes", "lost_probes", "black_holes", "lost_packets")
    return {
        "quic": {
            "settled_bytes": sorted(set(end["settled_bytes"])),
            "settled_mtu": sorted({size + headers for size in end["settled_bytes"]}),
            "datagrams": number,
            "datagrams_per_call": number / end["calls"] if end["calls"] else None,
            "mean_datagram_bytes": amount / number if number else None,
            "share_at_settled": _share_at_settled(end),
            **{name: end[name] for name in same},
        }
    }


def _share_at_settled(end: Mapping[str, Any]) -> float | None:
    """The share of an end's bytes that are in datagrams of a size that a connection settled at."""
    amount = sum(size * count for size, count in end["sizes"])
    settled = set(end["settled_bytes"])
    return sum(size * count for size, count in end["sizes"] if size in settled) / amount if amount else None


def _count(end: Mapping[str, Any]) -> int:
    return sum(int(count) for _, count in end["sizes"])


def _headers(conditions: Conditions) -> int:
    return IP_BYTES[conditions.family] + UDP_BYTES


def _headers_of(record: Json) -> int:
    """The same by the address of a host."""
    hosts = record["rack"]["hosts"]
    return IP_BYTES[6 if ":" in hosts[0]["address"] else 4] + UDP_BYTES


def _udp(record: Json, host: str, name: str) -> int:
    """A counter of UDP of both versions of IP, which the kernel counts apart."""
    nstat = deltas(record, host, "nstat")
    return int(nstat.get(f"Udp{name}", 0)) + int(nstat.get(f"Udp6{name}", 0))
