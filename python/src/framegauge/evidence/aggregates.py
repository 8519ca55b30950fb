"""Proof of the largest aggregates (BIG TCP): record in, failures out.

Sizes that are read back say what the kernel may do, and not what it did. So the aggregates above 64 KiB are counted
that each receiving stack was handed (`wire.end`): none may be seen where no size is above it, and some must be where a
sender could build them, which takes a transfer in one piece that is larger. Hosts of the user's own are joined by a
network that carries frames: there, those count that the senders' interfaces were handed, and whether receivers merge as
much is up to their NICs and `gro_size`. A run in which nothing of that kind could
be seen is not excluded: its aggregates are listed as not proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from framegauge.evidence.nic import deltas, nic_readings
from framegauge.networks.aggregates import USUAL_BYTES
from framegauge.record import Record
from framegauge.testbeds.base import Conditions, Json

__all__ = ["aggregate_failures", "aggregate_readings", "is_asked", "unproved_aggregates"]

_KEYS = {"gso": "gso_size", "gro": "gro_size"}
_NONE: Mapping[str, Any] = MappingProxyType({"count": 0, "largest_bytes": None})


def is_asked(conditions: Conditions) -> bool:
    """Whether sizes of aggregates are part of the conditions."""
    return conditions.gso_bytes is not None or conditions.gro_bytes is not None


def _is_big(conditions: Conditions) -> bool:
    return max(conditions.gso_bytes or 0, conditions.gro_bytes or 0) > USUAL_BYTES


def _can_send(conditions: Conditions, record: Json) -> bool:
    """Whether a sender could build aggregates above 64 KiB: by its sizes, and by the pieces that the program writes."""
    work: Record = record["workload"]
    amount = work["transfer_bytes"] if work["transfer_bytes"] is not None else work["bytes"]
    message = (work.get("sizes") or {}).get("message_bytes")
    return (conditions.gso_bytes or 0) > USUAL_BYTES and conditions.tso is not False and amount > USUAL_BYTES and (
        message is None or message > USUAL_BYTES
    )  # fmt: skip


def aggregate_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each size that is not as requested, and for aggregates that contradict the sizes."""
    sizes = {"gso": conditions.gso_bytes, "gro": conditions.gro_bytes}
    for place, _, nic in nic_readings(record):
        for name, size in sizes.items():
            for version, key in (("IPv6", f"{name}_bytes"), ("IPv4", f"{name}_ipv4_bytes")):
                reading = (nic.get("aggregates") or {}).get(key)
                # Before Linux 6.3 one size was for both, and IPv4 took no more than the usual one.
                if size is not None and reading != size and not (reading is None and version == "IPv4"):
                    yield f"{_KEYS[name]} of {place} for {version}: requested {size}, found {reading}"
    if not is_asked(conditions):
        return
    readings = _counted(record)
    # A size that is not asked for is the usual one on hosts that are built, and anything on the user's own.
    has_known_sizes = conditions.capabilities.builds_hosts or None not in sizes.values()
    for host, reading in readings.items():
        if reading["count"] and has_known_sizes and not _is_big(conditions):
            yield f"aggregates above 64 KiB at {host}: expected none, found {_said(reading)}"
        sent_reading = reading.get("sent")
        if (
            sent_reading
            and sent_reading["count"]
            and conditions.gso_bytes is not None
            and conditions.gso_bytes <= USUAL_BYTES
        ):
            yield f"aggregates above 64 KiB from {host}: expected none, found {_said(sent_reading)}"
    if not _can_send(conditions, record):
        return
    work: Record = record["workload"]
    if conditions.capabilities.passes_aggregates:
        place, counts = "at", {host: readings[host] for host in work["receivers"] if host in readings}
    else:
        place, counts = (
            "from",
            {host: readings[host]["sent"] for host in work["senders"] if "sent" in readings.get(host, {})},
        )
    if counts and not any(reading["count"] for reading in counts.values()):
        mean = _mean(record, work["receivers"])
        yield (
            f"aggregates above 64 KiB {place} {', '.join(counts)}: expected some with a gso_size of "
            f"{conditions.gso_bytes}, found none (mean packet of {mean:.0f} bytes)"
        )


def _said(reading: Mapping[str, Any]) -> str:
    return f"{reading['count']} (the first up to {reading['largest_bytes']} bytes)"


def unproved_aggregates(conditions: Conditions, record: Json) -> list[str]:
    """Why BIG TCP that was asked for is neither proved nor disproved."""
    if not _is_big(conditions) or _largest_mean(record) > USUAL_BYTES:
        return []
    readings = _counted(record)
    if not readings:
        return ["aggregates above 64 KiB: not counted (meters.wire is off), and the mean packet is smaller"]
    if any(reading["count"] for reading in readings.values()):
        return []
    if any(reading.get("sent", _NONE)["count"] for reading in readings.values()):
        merging = (conditions.gro_bytes or 0) > USUAL_BYTES
        size = f"sent, and none was merged by a receiver, with a gro_size of {conditions.gro_bytes}"
        return [f"aggregates above 64 KiB: {size}"] if merging else []
    return ["aggregates above 64 KiB: none was seen, and the program moved nothing in one piece that needs one"]


def aggregate_readings(record: Json) -> dict[str, Any]:
    """The aggregates above 64 KiB that receivers' stacks were handed, and the bytes of their mean packet."""
    readings = _counted(record)
    if not readings:
        return {}
    receivers = [host for host in record["workload"]["receivers"] if host in readings]
    largest = [reading["largest_bytes"] for reading in readings.values() if reading["largest_bytes"] is not None]
    figures = {
        "big_aggregates": sum(readings[host]["count"] for host in receivers),
        "largest_aggregate_bytes": max(largest, default=None),
        "mean_packet_bytes": _mean(record, receivers),
    }
    senders = record["workload"].get("senders", ())
    sent_counts = [readings[host]["sent"]["count"] for host in senders if "sent" in readings.get(host, {})]
    return figures | ({"big_aggregates_sent": sum(sent_counts)} if sent_counts else {})


def _counted(record: Json) -> dict[str, Mapping[str, Any]]:
    """The counts by host, where they were made."""
    return {host: wire["aggregates"] for host, wire in record.get("wire", {}).items() if "aggregates" in wire}


def _largest_mean(record: Json) -> float:
    return max((_mean(record, [host]) for host in record["workload"]["receivers"]), default=0.0)


def _mean(record: Json, hosts: list[str]) -> float:
    """The mean bytes of the packets that these hosts' stacks took in, aggregates counted once."""
    counters = [deltas(record, host, "nstat") for host in hosts]
    packets = sum(nstat.get("IpInReceives", 0) + nstat.get("Ip6InReceives", 0) for nstat in counters)
    octets = sum(nstat.get("IpExtInOctets", 0) + nstat.get("Ip6InOctets", 0) for nstat in counters)
    return octets / packets if packets else 0.0
