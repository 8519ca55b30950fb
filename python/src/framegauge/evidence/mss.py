"""Proof of MTUs by what TCP makes of them: the MSS in SYNs, and that of live sockets. Record in, failures out.

Each NIC of a host announces by its own MTU, so connections on the network of the first NICs and those on the storage
network are told apart by their addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from framegauge.evidence.changes import opened_after, paths
from framegauge.evidence.network import through
from framegauge.evidence.nic import HEADERS_BYTES, end_of, is_over_udp, overlay_bytes, taking_part
from framegauge.record import Record
from framegauge.testbeds.base import Conditions, Json

__all__ = ["live_mss_failures", "mss_failures", "unproved_mss"]

TIMESTAMP_BYTES = 12  # of the timestamps option, which Linux sends with every segment

Nic = tuple[str, int]  # a host, and the number of its NIC


def mss_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of the MSS: SYN and SYN-ACK, captured at every host that takes part, must announce that of the sending
    NIC; and if the storage network has an MTU of its own, some must have crossed it."""
    nics = {address: nic for host in record["rack"]["hosts"] for address, nic in _addresses(host)}
    involved = taking_part(record)
    # Where servers outlast runs, so may their connections, whose MSS the live sockets show.
    lasting_hosts = {row["host"] for row in record["workload"].get("live", ()) if "lasting_runs" in record["workload"]}
    for host, wire in record.get("wire", {}).items():
        if wire["lost"]:
            yield f"SYNs at {host}: the capture lost {wire['lost']} packets, expected none"
        kinds = {(syn["direction"], syn["ack"]) for syn in wire["syns"]}
        has_both = {direction for direction, _ in kinds} == {"in", "out"} and {ack for _, ack in kinds} == {True, False}
        if host in involved - lasting_hosts and not has_both and not is_over_udp(record):
            yield f"SYNs at {host}: found {len(wire['syns'])}, expected a SYN and a SYN-ACK"
        yield from sorted(_wrong(conditions, record, nics, host, host in involved))
    if conditions.storage_mtu is not None and "wire" in record and _uses_storage(record):
        sources = {_address(syn) for wire in record["wire"].values() for syn in wire["syns"]}
        if not any(number > 1 for address, (_, number) in nics.items() if address in sources):
            yield "SYNs on the storage network: found none, expected those of its connections"


def _wrong(
    conditions: Conditions, record: Json, nics: Mapping[str, Nic], host: str, is_involved: bool
) -> Iterator[str]:
    """The SYNs seen at a host that announce another MSS than they have to, each once."""
    announced = {address: _announced(conditions, record, *nic) for address, nic in nics.items()}
    addresses, failures = set(), set()
    for syn in record["wire"][host]["syns"]:
        address = _address(syn)
        if address not in nics:
            failures.add(f"SYN at {host}: unknown source {syn['source']}")
            continue
        addresses.add(address)
        # In order: once a changed MTU was announced, the previous one must not be any more.
        if syn["mss_bytes"] in announced[address]:
            announced[address] = announced[address][announced[address].index(syn["mss_bytes"]) :]
            continue
        kind = "SYN-ACK" if syn["ack"] else "SYN"
        expected = " or ".join(map(str, announced[address]))
        failures.add(
            _differs(f"MSS in the {kind} of {end_of(*nics[address])}, seen at {host}", expected, syn["mss_bytes"])
        )
    for address in sorted(addresses if is_involved else ()):
        (sender, number), (first, *_, last) = nics[address], (announced[address] * 2)
        # The last connections may all be on the first network.
        is_used = number <= record["workload"].get("nics", 1)
        if first != last and is_used and opened_after(conditions, record, [sender]):
            failures.add(_differs(f"MSS that {end_of(sender, number)} announced last, seen at {host}", last, first))
    yield from failures


def unproved_mss(conditions: Conditions, record: Json) -> Iterator[str]:
    """That no connection shows the MTU of the storage network, which is only read then."""
    if conditions.storage_mtu is not None and not _uses_storage(record):
        yield "MTU of the storage network: it was read, but this workload has no connections there to measure it by"


def live_mss_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of the MSS of live sockets between two hosts, where the workload had them watched: what the path's MTU
    leaves, without TCP timestamps or with them (RFC 7323). A connection from before a change keeps an older one."""
    for row in record["workload"].get("live", ()):
        host, other, nic = row["host"], row["other"], row.get("nic", 1)
        less = HEADERS_BYTES[conditions.family] + overlay_bytes(record, host)
        sizes = [through(conditions, host, other, mtu) - less for mtu in paths(conditions, host, other, nic)]
        expected = [mss for size in sizes for mss in (size, size - TIMESTAMP_BYTES)]
        if row["mss_bytes"] not in expected:
            program = row["program"] or "an unknown program"
            subject = f"MSS of live sockets of {program} on {host} to {end_of(other, nic)}"
            yield _differs(subject, " or ".join(map(str, expected)), row["mss_bytes"])


def _differs(subject: str, setting: object, reading: object) -> str:
    return f"{subject}: requested {setting}, found {reading}"


def _address(syn: Json) -> str:
    source: str = syn["source"].rpartition(":")[0]
    return source.strip("[]")


def _addresses(host: Json) -> Iterator[tuple[str, Nic]]:
    """The addresses of all NICs of a host; some testbeds report only the first."""
    yield host["address"], (host["name"], 1)
    yield from ((nic["address"], (host["name"], number)) for number, nic in enumerate(host.get("nics", ()), 1))


def _announced(conditions: Conditions, record: Json, host: str, number: int) -> list[int]:
    """All MSS values that a NIC has to announce, in order."""
    less = overlay_bytes(record, host) + HEADERS_BYTES[conditions.family]
    return [mtu - less for mtu in conditions.sent_mtus(host, number)]


def _uses_storage(record: Json) -> bool:
    """Whether a workload tells of itself that it has connections between second NICs."""
    work: Record = record["workload"]
    return work.get("nics", 1) > 1 or bool(record["workload"].get("ceph", {}).get("storage_network"))
