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
    asked = {"gso": conditions.gso_bytes, "gro": conditions.gro_bytes}
    for where, _, nic in nic_readings(record):
        for name, size in asked.items():
            for version, key in (("IPv6", f"{name}_bytes"), ("IPv4", f"{name}_ipv4_bytes")):
                found = (nic.get("aggregates") or {}).get(key)
                # Before Linux 6.3 one size was for both, and IPv4 took no more than the usual one.
                if size is not None and found != size and not (found is None and version == "IPv4"):
                    yield f"{_KEYS[name]} of {where} for {version}: requested {size}, found {found}"
    if not is_asked(conditions):
        return
    seen = _counted(record)
    # A size that is not asked for is the usual one on hosts that are built, and anything on the user's own.
    known = conditions.capabilities.builds_hosts or None not in asked.values()
    for host, found in seen.items():
        if found["count"] and known and not _is_big(conditions):
            yield f"aggregates above 64 KiB at {host}: expected none, found {_said(found)}"
        sent = found.get("sent")
        if sent and sent["count"] and conditions.gso_bytes is not None and conditions.gso_bytes <= USUAL_BYTES:
            yield f"aggregates above 64 KiB from {host}: expected none, found {_said(sent)}"
    if not _can_send(conditions, record):
        return
    work: Record = record["workload"]
    if conditions.capabilities.passes_aggregates:
        where, counts = "at", {host: seen[host] for host in work["receivers"] if host in seen}
    else:
        where, counts = "from", {host: seen[host]["sent"] for host in work["senders"] if "sent" in seen.get(host, {})}
    if counts and not any(found["count"] for found in counts.values()):
        mean = _mean(record, work["receivers"])
        yield (
            f"aggregates above 64 KiB {where} {', '.join(counts)}: expected some with a gso_size of "
            f"{conditions.gso_bytes}, found none (mean packet of {mean:.0f} bytes)"
        )


def _said(found: Mapping[str, Any]) -> str:
    return f"{found['count']} (the first up to {found['largest_bytes']} bytes)"


def unproved_aggregates(conditions: Conditions, record: Json) -> list[str]:
    """Why BIG TCP that was asked for is neither proved nor disproved."""
    if not _is_big(conditions) or _largest_mean(record) > USUAL_BYTES:
        return []
    seen = _counted(record)
    if not seen:
        return ["aggregates above 64 KiB: not counted (meters.wire is off), and the mean packet is smaller"]
    if any(found["count"] for found in seen.values()):
        return []
    if any(found.get("sent", _NONE)["count"] for found in seen.values()):
        merging = (conditions.gro_bytes or 0) > USUAL_BYTES
        size = f"sent, and none was merged by a receiver, with a gro_size of {conditions.gro_bytes}"
        return [f"aggregates above 64 KiB: {size}"] if merging else []
    return ["aggregates above 64 KiB: none was seen, and the program moved nothing in one piece that needs one"]


def aggregate_readings(record: Json) -> dict[str, Any]:
    """The aggregates above 64 KiB that receivers' stacks were handed, and the bytes of their mean packet."""
    seen = _counted(record)
    if not seen:
        return {}
    receivers = [host for host in record["workload"]["receivers"] if host in seen]
    largest = [found["largest_bytes"] for found in seen.values() if found["largest_bytes"] is not None]
    counted = {
        "big_aggregates": sum(seen[host]["count"] for host in receivers),
        "largest_aggregate_bytes": max(largest, default=None),
        "mean_packet_bytes": _mean(record, receivers),
    }
    senders = record["workload"].get("senders", ())
    sent = [seen[host]["sent"]["count"] for host in senders if "sent" in seen.get(host, {})]
    return counted | ({"big_aggregates_sent": sum(sent)} if sent else {})


def _counted(record: Json) -> dict[str, Mapping[str, Any]]:
    """The counts by host, where they were made."""
    return {host: wire["aggregates"] for host, wire in record.get("wire", {}).items() if "aggregates" in wire}


def _largest_mean(record: Json) -> float:
    return max((_mean(record, [host]) for host in record["workload"]["receivers"]), default=0.0)


def _mean(record: Json, hosts: list[str]) -> float:
    """The mean bytes of the packets that these hosts' stacks took in, aggregates counted once."""
    found = [deltas(record, host, "nstat") for host in hosts]
    packets = sum(each.get("IpInReceives", 0) + each.get("Ip6InReceives", 0) for each in found)
    octets = sum(each.get("IpExtInOctets", 0) + each.get("Ip6InOctets", 0) for each in found)
    return octets / packets if packets else 0.0
