"""Proof of NIC settings: each offload, and interrupt moderation. Record in, failures out.

An offload that is off must leave no trace at all. One that is on must leave a trace where the traffic allows it: bulk
data, and for offloads that merge frames, a moderation of at least two frame times (frames that are delivered one by one
cannot be merged).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from framegauge.record import Record
from framegauge.testbeds.base import Conditions, Json

__all__ = [
    "QUIC",
    "deltas",
    "end_of",
    "fabric_hosts",
    "frames_per_aggregate",
    "is_bulk",
    "is_over_udp",
    "loopback_packets",
    "nic_failures",
    "nic_readings",
    "numbered_readings",
    "overlay_bytes",
    "readings",
    "receives_bulk",
    "segment_bytes",
    "taking_part",
]

# The MSS that a host announces is its MTU less the headers without options (RFC 9293 3.7.1, RFC 8200).
HEADERS_BYTES = {4: 40, 6: 60}
BULK_SEGMENTS = 100  # from this size on, the ends of a transfer hardly change its mean frame
MERGEABLE_FRAMES = 2  # frames that must fit into one moderation interval
WIRE_OVERHEAD_BYTES = 38  # of a frame over its packet: Ethernet header, FCS, preamble, gap
SPARE_INTERRUPTS = 2  # one at each end of the interval
QUIC = "quic"  # a transport, whose own proofs are in `evidence.quic`
FIELDS = ("NoECT", "ECT0", "ECT1", "CE")


def nic_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each NIC setting that the record does not prove."""
    for check in _CHECKS:
        yield from check(conditions, record)


def end_of(host: str, number: int) -> str:
    """A host's NIC in words: the first has the host's name."""
    return host if number == 1 else f"{host}.{number}"


def is_over_udp(record: Json) -> bool:
    """Whether a workload sends datagrams, by itself or in QUIC."""
    return record["workload"].get("transport") in ("udp", QUIC)


def taking_part(record: Json) -> set[str]:
    """The hosts that sent or received the bulk of the data."""
    return {*record["workload"]["senders"], *record["workload"]["receivers"]}


def segment_bytes(conditions: Conditions) -> int:
    """The smallest MSS of any path."""
    return min(conditions.first_mtus) - HEADERS_BYTES[conditions.family]


def overlay_bytes(record: Json, host: str) -> int:
    """The bytes by which an overlay reduces a host's MTU, as computed by the agent; 0 without an overlay."""
    ceiling = record["rack"]["ceilings"][host]
    return int(ceiling["mtu"] - ceiling.get("inner_mtu", ceiling["mtu"]))


def is_bulk(conditions: Conditions, record: Json) -> bool:
    """Whether the run moved enough data in one piece for full frames and aggregates of TCP to appear."""
    if record["workload"].get("transport") == QUIC:
        return False
    amount = record["workload"]["transfer_bytes"]
    return bool(
        (amount if amount is not None else record["workload"]["bytes"]) >= BULK_SEGMENTS * segment_bytes(conditions)
    )


def deltas(record: Json, host: str, group: str) -> dict[str, int]:
    """The increase of a host's counters (`interface` or `nstat`) during the run."""
    before, after = (record[f"counters_{moment}"][host][group] for moment in ("before", "after"))
    return {name: after[name] - before.get(name, 0) for name in after}


def loopback_packets(record: Json, host: str) -> int:
    """Packets that a host sent to itself during the run; 0 where the agent does not count them."""
    before, after = (record[f"counters_{moment}"][host].get("loopback_packets", 0) for moment in ("before", "after"))
    return int(after - before)


def fabric_hosts(record: Json) -> list[Json]:
    """The fabric's counts for each host, over all of its NICs, without routers. Empty if there is no fabric."""
    fabric = record["measure"]["fabric"]
    routers = {node["name"] for node in record["rack"].get("routers", ())} if fabric is not None else ()
    return [node for node in fabric["hosts"] if node["host"] not in routers] if fabric is not None else []


def nic_readings(record: Json) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The readings of every NIC before and after the run: place, host, reading.

    The reading of the first NIC is that of the host, which has more keys.
    """
    yield from ((place, host, reading) for place, host, _, reading in numbered_readings(record))


def numbered_readings(record: Json) -> Iterator[tuple[str, str, int, Mapping[str, Any]]]:
    """The same with the number of each NIC, from 1: place, host, number, reading."""
    for moment in ("before", "after"):
        for host, reading in record[moment].items():
            yield f"{host} {moment} the run", host, 1, reading
            for number, nic in enumerate(reading.get("nics", ())[1:], 2):
                yield f"{host}.{number} {moment} the run", host, number, nic


def frames_per_aggregate(record: Json, host: str) -> float | None:
    """The mean number of frames in each packet that a host's stack took in; 1 if nothing was merged.

    The kernel counts the effect of GRO: packets as the stack gets them (InReceives), and segments by their ECN field.
    To the kernel an aggregate from a TAP is one segment, so the effect of LRO is taken from the fabric's counts.
    """
    nstat = deltas(record, host, "nstat")
    layer = "IpExt" if nstat.get("IpInReceives", 0) >= nstat.get("Ip6InReceives", 0) else "Ip6"
    received = nstat.get("IpInReceives" if layer == "IpExt" else "Ip6InReceives", 0)
    segments = sum(nstat.get(f"{layer}In{field}Pkts", 0) for field in FIELDS)
    hosts = {fabric_host["host"]: fabric_host for fabric_host in fabric_hosts(record)}
    lro = _ratio(hosts, [host], "written_frames", "written_packets") if hosts else None
    return segments / received * (lro or 1.0) if received else None


def receives_bulk(conditions: Conditions, record: Json) -> bool:
    """Whether receivers had a chance to merge frames: bulk, and enough time between two interrupts."""
    if not is_bulk(conditions, record):
        return False
    if conditions.capabilities.passes_aggregates:
        # Aggregates of TSO arrive whole here; whether GRO forms any depends on the packets that a poll finds.
        return bool(conditions.tso)
    if conditions.bits_per_second is None:
        return False
    frame_seconds = 8 * (max(conditions.first_mtus) + WIRE_OVERHEAD_BYTES) / conditions.bits_per_second
    return conditions.moderation_seconds >= MERGEABLE_FRAMES * frame_seconds


def readings(record: Json) -> dict[str, Any]:
    """Readings of aggregation for the report."""
    work: Record = record["workload"]
    figures: dict[str, Any] = {}
    merged = [item for host in work["receivers"] if (item := frames_per_aggregate(record, host)) is not None]
    figures["frames_per_aggregate"] = sum(merged) / len(merged) if merged else None
    hosts = {item["host"]: item for item in fabric_hosts(record)}
    if not hosts:
        return figures
    figures["frames_per_interrupt"] = _ratio(hosts, work["receivers"], "written_frames", "interrupts")
    figures["frames_per_read"] = _ratio(hosts, work["senders"], "read_frames", "read_packets")
    return figures


def _ratio(hosts: Mapping[str, Json], names: list[str], above: str, below: str) -> float | None:
    total = sum(hosts[name].get(below) or 0 for name in names)
    return sum(hosts[name][above] for name in names) / total if total else None


def _read(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the kernel's offload settings. GSO follows TSO; LRO is done by the fabric."""
    settings = {
        "tso": conditions.tso, "gso": conditions.tso, "gro": conditions.gro, "tx_checksum": conditions.checksum,
    }  # fmt: skip
    for place, _, reading in nic_readings(record):
        for name, setting in settings.items():
            if reading["offloads"][name] is not setting:
                yield f"{name} of {place}: requested {setting}, found {reading['offloads'][name]}"


def _tso(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the aggregates that the fabric read from hosts."""
    for host in fabric_hosts(record):
        name = host["host"]
        if not conditions.tso and host["aggregates"]:
            yield f"aggregates from {name} with TSO off: expected none, found {host['aggregates']}"
        # A packet is counted with its Ethernet header, 18 bytes if tagged.
        limit = max(*conditions.mtus(name), *conditions.mtus(name, 2)) + 18
        if not conditions.tso and host["largest_packet_bytes"] > limit:
            largest = host["largest_packet_bytes"]
            yield f"largest packet from {name} with TSO off: expected at most {limit}, found {largest}"
        sends = name in record["workload"]["senders"] and is_bulk(conditions, record)
        if conditions.tso and sends and not host["aggregates"]:
            yield f"aggregates from {name} with TSO on: expected some, found none"


def _lro(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the frames that the fabric delivered in aggregates."""
    for host in fabric_hosts(record):
        name, merged = host["host"], host["merged_frames"]
        if not conditions.lro and merged:
            yield f"frames merged for {name} with LRO off: expected none, found {merged}"
        takes = name in record["workload"]["receivers"] and receives_bulk(conditions, record)
        if conditions.lro and takes and not merged:
            yield f"frames merged for {name} with LRO on: expected some, found none"


def _merging(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of LRO and GRO together, by the counters of the receiving stacks."""
    for host in record["workload"]["receivers"]:
        ratio = frames_per_aggregate(record, host)
        if ratio is None and not is_over_udp(record):  # of what nothing answers, nothing may have arrived
            yield f"packets that the stack of {host} took in: found none, expected some"
        elif ratio is None:
            continue
        elif not (conditions.lro or conditions.gro) and ratio != 1:
            yield f"frames per aggregate at {host} with LRO and GRO off: expected exactly 1, found {ratio:.3f}"
        elif (conditions.lro or conditions.gro) and receives_bulk(conditions, record) and ratio <= 1:
            yield f"frames per aggregate at {host} with LRO or GRO on: expected above 1, found {ratio:.3f}"


def _checksums(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of checksum offload, by the checksums that hosts left to the fabric, and wrong checksums."""
    work: Record = record["workload"]
    for fabric_host in fabric_hosts(record):
        count, whose = fabric_host["unfinished_checksums"], f"packets without a checksum from {fabric_host['host']}"
        if count and not conditions.checksum:
            yield f"{whose} with checksum offload off: expected none, found {count}"
        # The kernel itself sums up a datagram that it takes apart.
        sends = fabric_host["host"] in work["senders"] and not is_over_udp(record)
        if not count and conditions.checksum and sends:
            yield f"{whose} with checksum offload on: expected some, found none"
    for host in record["counters_before"]:
        wrong = deltas(record, host, "nstat").get("TcpInCsumErrors", 0)
        if wrong:
            yield f"segments with a wrong checksum at {host}: expected 0, found {wrong}"


def _moderation(conditions: Conditions, record: Json) -> Iterator[str]:
    fabric, moderation = record["measure"]["fabric"], conditions.moderation_seconds
    if fabric is None:
        for moment in ("before", "after"):
            for host, reading in record[moment].items():
                seconds = reading.get("moderation_seconds")
                # A moderation of 0 that cannot be read counts as 0.
                if abs((seconds or 0.0) - moderation) > 1e-9:
                    yield f"moderation of {host} {moment} the run: requested {moderation:g} s, found {seconds}"
        return
    if moderation <= 0:
        return
    nics = {host["name"]: len(host.get("nics", ())) for host in record["rack"].get("hosts", ())}
    for entry in fabric_hosts(record):
        limit = (record["measure"]["elapsed_seconds"] / moderation + SPARE_INTERRUPTS) * (nics.get(entry["host"]) or 1)
        if entry["interrupts"] > limit:
            yield f"interrupts of {entry['host']}: expected at most {limit:.0f}, found {entry['interrupts']}"


_CHECKS: tuple[Callable[[Conditions, Json], Iterator[str]], ...] = (
    _read, _tso, _lro, _merging, _checksums, _moderation,
)  # fmt: skip
