"""Treatment proof: did the run happen under the conditions that it claims? Pure: record → failures.

Each check compares what was asked with what was seen: on the wire (SYNs, frame sizes), in live sockets
(congestion control), or read back from the kernel before and after the run (MTU, offloads, shaper,
sysctls). A run with any failure is discarded, and the failures say why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from framegauge.testbeds.base import Conditions, Json

__all__ = ["failures"]

# The MSS that a host announces is its MTU less the headers without options (RFC 9293 3.7.1, RFC 8200).
HEADERS_BYTES = {4: 40, 6: 60}
BULK_SEGMENTS = 100  # from here on a transfer's ends no longer blur its mean frame
BULK_SHARE = 0.9  # of the full frame, that the mean frame of a bulk transfer must reach
RATE_SHARE = 0.001  # tolerated difference of the shaper's rate: the kernel rounds it
BURST_SHARE = 0.01  # and of its burst, which the kernel keeps in ticks of 64 ns
HANDSHAKE_SLACK_SECONDS = 0.02  # above RTT and moderation: what fidelity.py still tolerates as lateness


def failures(conditions: Conditions, record: Json) -> list[str]:
    """One line for each thing that the record does not prove; empty: the treatment is proven."""
    return [line for check in _CHECKS for line in check(conditions, record)]


def _differs(where: str, asked: object, found: object) -> str:
    return f"{where}: asked {asked}, found {found}"


def _readings(record: Json) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every host's readings before and after."""
    for when in ("before", "after"):
        for host, reading in record[when].items():
            yield f"{host} {when} the run", host, reading


def _mtu(conditions: Conditions, record: Json) -> Iterator[str]:
    for where, host, reading in _readings(record):
        if reading["mtu"] != conditions.mtu[host]:
            yield _differs(f"MTU of {where}", conditions.mtu[host], reading["mtu"])


def _mss(conditions: Conditions, record: Json) -> Iterator[str]:
    """Both SYNs, seen at both hosts, announce the MSS of the host that sent them."""
    names = {host["address"]: host["name"] for host in record["rack"]["hosts"]}
    for host, wire in record["wire"].items():
        if wire["lost"]:
            yield f"SYNs at {host}: the capture lost {wire['lost']} packets, expected none"
        kinds = {(syn["direction"], syn["ack"]) for syn in wire["syns"]}
        if {direction for direction, _ in kinds} != {"in", "out"} or {ack for _, ack in kinds} != {True, False}:
            yield f"SYNs at {host}: found {len(wire['syns'])}, expected a SYN and a SYN-ACK"
        wrong = set()
        for syn in wire["syns"]:
            sender = names.get(syn["source"].rpartition(":")[0].strip("[]"))
            if sender is None:
                wrong.add(f"SYN at {host}: unknown source {syn['source']}")
                continue
            expected = conditions.mtu[sender] - HEADERS_BYTES[conditions.family]
            if syn["mss_bytes"] != expected:
                kind = "SYN-ACK" if syn["ack"] else "SYN"
                wrong.add(_differs(f"MSS in the {kind} of {sender}, seen at {host}", expected, syn["mss_bytes"]))
        yield from sorted(wrong)


def _is_bulk(conditions: Conditions, record: Json) -> bool:
    amount = record["workload"]["transfer_bytes"]
    segment = min(conditions.mtu.values()) - HEADERS_BYTES[conditions.family]
    return bool((amount if amount is not None else record["workload"]["bytes"]) >= BULK_SEGMENTS * segment)


def _frames(conditions: Conditions, record: Json) -> Iterator[str]:
    """Frame sizes that the fabric counted: never above the smaller MTU, and near it for bulk."""
    fabric = record["measure"]["fabric"]
    if fabric is None:
        return
    smallest = min(conditions.mtu, key=lambda host: conditions.mtu[host])
    full = record["rack"]["ceilings"][smallest]["frame_bytes"]
    count = sum(host["data_frames"] for host in fabric["hosts"])
    if not count:
        yield "data frames on the wire: found none, expected some"
        return
    largest = max(host["largest_frame_bytes"] for host in fabric["hosts"])
    mean = sum(host["data_frame_bytes"] for host in fabric["hosts"]) / count
    if largest > full:
        yield f"largest frame: expected at most {full} bytes at this MTU, found {largest}"
    if _is_bulk(conditions, record):
        if largest < full:
            yield f"largest frame: expected {full} bytes at this MTU, found {largest}"
        if mean < BULK_SHARE * full:
            yield f"mean data frame: expected at least {BULK_SHARE * full:.0f} bytes, found {mean:.1f}"


def _segments(conditions: Conditions, record: Json) -> Iterator[str]:
    """The same from the sender's socket, where no fabric sees the frames."""
    mean = record["workload"]["mean_segment_payload_bytes"]
    if record["measure"]["fabric"] is not None:
        return
    if mean is None:
        yield "mean segment payload: not measured, expected a number"
        return
    mss = min(conditions.mtu.values()) - HEADERS_BYTES[conditions.family]
    if mean > mss or (_is_bulk(conditions, record) and mean < BULK_SHARE * mss):
        yield f"mean segment payload: expected {BULK_SHARE * mss:.0f} to {mss} bytes, found {mean:.1f}"


def _offloads(conditions: Conditions, record: Json) -> Iterator[str]:
    for where, _, reading in _readings(record):
        for name in ("tso", "gso", "gro"):
            if reading["offloads"][name] is not conditions.offloads:
                yield _differs(f"{name} of {where}", conditions.offloads, reading["offloads"][name])
    fabric = record["measure"]["fabric"]
    if fabric is None:
        return
    for host in fabric["hosts"]:
        if not conditions.offloads and host["aggregates"]:
            yield f"aggregates from {host['host']} with offloads off: expected none, found {host['aggregates']}"
        sends = host["host"] == record["workload"]["sender"]
        if conditions.offloads and sends and not host["aggregates"] and _is_bulk(conditions, record):
            yield f"aggregates from {host['host']} with offloads on: expected some, found none"
        # A packet is counted with its Ethernet header, 18 bytes if tagged.
        limit = conditions.mtu[host["host"]] + 18
        if not conditions.offloads and host["largest_packet_bytes"] > limit:
            found = host["largest_packet_bytes"]
            yield f"largest packet from {host['host']} with offloads off: expected at most {limit}, found {found}"


def _congestion_control(conditions: Conditions, record: Json) -> Iterator[str]:
    asked = conditions.congestion_control
    for host, found in record["workload"]["congestion_control"].items():
        if list(found) != [asked]:
            yield _differs(f"congestion control of live sockets on {host}", asked, ", ".join(found) or "none")
    for where, _, reading in _readings(record):
        if reading["congestion_control_route"] != asked:
            yield _differs(f"congestion control of the route of {where}", asked, reading["congestion_control_route"])


def _shaper(conditions: Conditions, record: Json) -> Iterator[str]:
    fabric = conditions.testbed == "fabric"
    for where, _, reading in _readings(record):
        qdisc = reading["qdisc"]
        if conditions.bits_per_second is None:
            if qdisc["kind"] == "tbf":
                yield _differs(f"shaper of {where}", "none", "tbf")
            continue
        if qdisc["kind"] != "tbf":
            yield _differs(f"shaper of {where}", "tbf", qdisc["kind"])
            continue
        rate = conditions.bits_per_second * (conditions.shaper_factor if fabric else 1)
        if abs(qdisc["bits_per_second"] - rate) > RATE_SHARE * rate:
            yield _differs(f"rate of the shaper of {where}", f"{rate:.0f} b/s", qdisc["bits_per_second"])
        burst = conditions.shaper_burst_bytes
        if fabric and abs(qdisc["burst_bytes"] - burst) > BURST_SHARE * burst:
            yield _differs(f"burst of the shaper of {where}", f"{burst} bytes", qdisc["burst_bytes"])


def _sysctls(conditions: Conditions, record: Json) -> Iterator[str]:
    for where, _, reading in _readings(record):
        for name, asked in conditions.sysctls.items():
            found = reading["sysctls"].get(name)
            # The kernel prints vectors with tabs.
            if found is None or found.split() != asked.split():
                yield _differs(f"{name} of {where}", asked, found)
    for host, before in record["before"].items():
        after = record["after"][host]["sysctls"]
        for name, value in before["sysctls"].items():
            if after.get(name) != value:
                yield f"{name} of {host} changed during the run: {value} became {after.get(name)}"


def _clean_start(_: Conditions, record: Json) -> Iterator[str]:
    for host, reading in record["before"].items():
        if reading["tcp_metrics_entries"]:
            yield f"cached TCP metrics on {host} before the run: expected 0, found {reading['tcp_metrics_entries']}"
    if record["workload"].get("refused"):
        yield f"connections with a wrong token: expected 0, found {record['workload']['refused']}"


def _rtt(conditions: Conditions, record: Json) -> Iterator[str]:
    """The fastest handshake of the run lies at the RTT that was asked for."""
    found = record["workload"].get("handshake_seconds")
    if conditions.testbed != "fabric" or found is None:
        return
    least = conditions.rtt_seconds
    most = least + 2 * conditions.moderation_seconds + HANDSHAKE_SLACK_SECONDS
    # The client's clock starts before connect() and ends after it: never below the RTT.
    if not least <= found <= most:
        yield f"fastest handshake: expected {least:.6f} to {most:.6f} s, found {found:.6f} s"


_CHECKS: tuple[Callable[[Conditions, Json], Iterator[str]], ...] = (
    _mtu, _mss, _frames, _segments, _offloads, _congestion_control, _shaper, _sysctls, _clean_start, _rtt,
)  # fmt: skip
