"""Treatment proof: whether a run happened under the conditions that it claims. Record in, failures out.

Each check compares a requested setting with evidence: on the wire (SYNs, frame sizes), in live sockets (congestion
control), or read back from the kernel before and after the run (MTU, offloads, shaper, sysctls). A run with any failure
is excluded, and the failures are the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from framegauge.evidence import fidelity, nic as proof_nic
from framegauge.evidence.aggregates import aggregate_failures, aggregate_readings, unproved_aggregates
from framegauge.evidence.blocks import block_readings, unproved_blocks
from framegauge.evidence.changes import change_failures
from framegauge.evidence.datagrams import fragment_failures, unproved_mtu
from framegauge.evidence.frames import BULK_SHARE, frame_failures
from framegauge.evidence.mss import live_mss_failures, mss_failures, unproved_mss
from framegauge.evidence.multipath import multipath_failures
from framegauge.evidence.network import handshake_range, network_failures, network_readings, own_rates
from framegauge.evidence.nic import (
    HEADERS_BYTES,
    deltas,
    is_bulk,
    is_over_udp,
    nic_failures,
    nic_readings,
    numbered_readings,
    overlay_bytes,
    segment_bytes,
)
from framegauge.evidence.pacing import pacing_failures
from framegauge.evidence.quic import discovery_failures, unproved_discovery
from framegauge.evidence.remembered import first_payload, remembered_failures, unproved_probing
from framegauge.evidence.tuning import window_failures
from framegauge.networks.aggregates import HARDWARE_GRO
from framegauge.record import Record
from framegauge.testbeds.base import Conditions, Json, is_qdisc

__all__ = ["failures", "readings", "sizes_failures", "unproved"]

RATE_SHARE = 0.001  # tolerated difference of the shaper's rate: the kernel rounds it
BURST_SHARE = 0.01  # and of its burst, which the kernel keeps in ticks of 64 ns
EARLY_SECONDS = 2 * 5e-6  # of two deliveries, `EARLY_NANOSECONDS` of the fabric's thread each
HANDSHAKE_SLACK_SECONDS = 0.02  # above RTT and moderation: the lateness that fidelity.py tolerates
# Segments of a connection that are not full: its handshake and its end, the generator's greeting, and the ends of the
# first windows, which are no whole number of segments. Of transfers of 1 MB at MTU 9000, 14 were counted.
UNFILLED = 16
SYN_TIMER_SECONDS = 1.0  # until a SYN is repeated (RFC 6298 section 2; Linux's TCP_TIMEOUT_INIT)


def failures(conditions: Conditions, record: Json) -> list[str]:
    """One line for each condition that the record does not prove; empty if the treatment is proven."""
    checks = _CHECKS if conditions.capabilities.builds_hosts else _ON_HOSTS
    return [line for check in checks for line in check(conditions, record)]


def unproved(conditions: Conditions, record: Json) -> list[str]:
    """Conditions that this record can neither prove nor disprove, with the reasons; they are not failures."""
    lines = [*unproved_aggregates(conditions, record), *unproved_probing(record), *unproved_blocks(record)]
    lines += [*unproved_mss(conditions, record), *unproved_mtu(conditions, record)]
    lines += unproved_discovery(conditions, record)
    for host, names in record["rack"].get("switched_along", {}).items():
        lines.append(f"{HARDWARE_GRO} alone: the interface of {host} has switched by itself: {', '.join(names)}")
    if conditions.capabilities.delays and _repeated_every_syn(record):
        lines.append("RTT by a handshake: every connection repeated its SYN")
    return lines


def readings(record: Json) -> dict[str, Any]:
    """Further readings for the report."""
    nic = proof_nic.readings(record)
    return {**nic, **network_readings(record), **aggregate_readings(record), **block_readings(record)}


def _differs(subject: str, setting: object, reading: object) -> str:
    return f"{subject}: requested {setting}, found {reading}"


def _readings(record: Json) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The readings of every host before and after the run."""
    for moment in ("before", "after"):
        for host, reading in record[moment].items():
            yield f"{host} {moment} the run", host, reading


def _turn(place: str) -> int:
    """The index of the requested value for a reading: the first before the run, the last after it."""
    return 0 if place.endswith(" before the run") else -1


def _mtu(conditions: Conditions, record: Json) -> Iterator[str]:
    for place, host, number, nic in numbered_readings(record):
        mtu = conditions.mtus(host, number)[_turn(place)]
        if nic["mtu"] != mtu:
            yield _differs(f"MTU of {place}", mtu, nic["mtu"])
    for place, host, reading in _readings(record):
        mtu = conditions.mtus(host)[_turn(place)]
        inner_mtu = None if conditions.overlay is None else mtu - overlay_bytes(record, host)
        if reading.get("overlay_mtu") != inner_mtu:
            yield _differs(f"MTU of {place} inside the overlay", inner_mtu, reading.get("overlay_mtu"))


def _segments(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the mean payload per segment, from the senders' TCP counters, where there is no fabric.

    A host that also receives bulk sends acknowledgements without payload, so only the upper bound applies to it.
    """
    work: Record = record["workload"]
    if record["measure"]["fabric"] is not None or not is_bulk(conditions, record):
        return
    counts = [deltas(record, host, "nstat") for host in work["senders"]]
    sent = sum(count.get("TcpOutSegs", 0) for count in counts)
    if not sent:
        yield "segments that the senders sent: found none, expected some"
        return
    mean, mss = work["bytes"] / sent, segment_bytes(conditions)
    largest = max(conditions.mtu.values()) - HEADERS_BYTES[conditions.family]
    one_way = not set(work["senders"]) & set(work["receivers"]) and work.get("only_bulk", True)
    full = min(BULK_SHARE * mss, first_payload(record, work["senders"]) or mss)
    connections = sum(count.get(f"Tcp{way}Opens", 0) for count in counts for way in ("Active", "Passive"))
    least = work["bytes"] / (work["bytes"] / full + UNFILLED * connections) if one_way else 0.0
    if not least <= mean <= largest:
        yield f"mean segment payload: expected {least:.0f} to {largest} bytes, found {mean:.1f}"


def _own_segments(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the mean payload by the run's sending sockets, where other traffic crosses the interfaces, too."""
    mean, mss = record["workload"].get("mean_segment_payload_bytes"), segment_bytes(conditions)
    if mean is None or not is_bulk(conditions, record):
        return
    largest = max(conditions.mtu.values()) - HEADERS_BYTES[conditions.family]
    least = min(BULK_SHARE * mss, first_payload(record, record["workload"]["senders"]) or mss)
    if not least <= mean <= largest:
        yield f"mean segment payload: expected {least:.0f} to {largest} bytes, found {mean:.1f}"


def _offloads(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the offload settings as read from the kernel."""
    settings = {
        "tso": conditions.tso, "gso": conditions.tso, "gro": conditions.gro, "tx_checksum": conditions.checksum,
        "lro": conditions.lro,
    }  # fmt: skip
    for place, _, reading in _readings(record):
        for name, setting in settings.items():
            if setting is not None and reading["offloads"][name] is not setting:
                yield _differs(f"{name} of {place}", setting, reading["offloads"][name])
        if conditions.hw_gro is not None:
            feature = reading["features"][HARDWARE_GRO]
            if feature is None or feature["on"] is not conditions.hw_gro:
                yield _differs(f"{HARDWARE_GRO} of {place}", conditions.hw_gro, feature and feature["on"])


def _qdisc(conditions: Conditions, record: Json) -> Iterator[str]:
    qdisc = conditions.qdisc
    if qdisc is None:
        return
    for place, _, reading in _readings(record):
        if not is_qdisc(reading["qdisc"], qdisc):
            yield _differs(f"queue discipline of {place}", qdisc, reading["qdisc"]["kind"])


def _live_congestion_control(conditions: Conditions, record: Json) -> Iterator[str]:
    algorithm = conditions.congestion_control
    for host, algorithms in record["workload"]["congestion_control"].items() if algorithm is not None else ():
        if list(algorithms) != [algorithm]:
            yield _differs(f"congestion control of live sockets on {host}", algorithm, ", ".join(algorithms) or "none")


def _congestion_control(conditions: Conditions, record: Json) -> Iterator[str]:
    algorithm = conditions.congestion_control
    for host, algorithms in record["workload"]["congestion_control"].items():
        if list(algorithms) != [algorithm]:
            yield _differs(f"congestion control of live sockets on {host}", algorithm, ", ".join(algorithms) or "none")
    for place, _, reading in nic_readings(record):
        if reading["congestion_control_route"] != algorithm:
            yield _differs(
                f"congestion control of the route of {place}", algorithm, reading["congestion_control_route"]
            )


def _nodelay(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of TCP_NODELAY in live sockets; settings of programs that cannot be read back are noted with the run."""
    socket_options = record["workload"].get("nodelay")
    if conditions.nagle is None:
        return
    if socket_options is None:
        if not record["workload"].get("not_proved"):
            yield "TCP_NODELAY of live sockets: not read, expected readings of both ends"
        return
    setting = not conditions.nagle
    for host, values in socket_options.items():
        if list(values) != [setting]:
            text = ", ".join(map(str, values)) or "none"
            yield _differs(f"TCP_NODELAY of live sockets on {host}", setting, text)


def sizes_failures(_: Conditions, record: Json) -> Iterator[str]:
    """Failures in the buffers of live sockets, which Linux sets to twice the requested size, up to twice its limit
    (socket(7)), and in the largest call, which must not exceed a message."""
    work: Record = record["workload"]
    size, message = (work.get("sizes", {}).get(f"{name}_bytes") for name in ("socket_buffer", "message"))
    for host, reading in work.get("sockets", {}).items():
        for side, limit in (("send", "wmem_max"), ("receive", "rmem_max")):
            actual = reading[f"{side}_buffer_bytes"]
            if size is None or actual == 2 * size:
                continue
            line = _differs(f"{side} buffer of live sockets on {host}", f"{size} bytes, kept as {2 * size}", actual)
            less = actual is not None and actual < 2 * size
            yield line + (f": raise net.core.{limit} on that host to {size} or more" if less else "")
        largest = reading["largest_call_bytes"]
        if message is not None and (largest is None or largest > message):
            yield _differs(f"bytes of the largest write or read on {host}", f"at most {message}", largest)


def _shaper(conditions: Conditions, record: Json) -> Iterator[str]:
    fabric = conditions.capabilities.has_fabric
    for place, host, reading in nic_readings(record):
        qdisc, link_rate = reading["qdisc"], conditions.bits_per_second
        if link_rate is None or not conditions.shaping:
            if qdisc["kind"] == "tbf":
                yield _differs(f"shaper of {place}", "none", "tbf")
            continue
        if qdisc["kind"] != "tbf":
            yield _differs(f"shaper of {place}", "tbf", qdisc["kind"])
            continue
        rates = own_rates(conditions, record, host, reading["interface"]) if fabric else []
        rate = rates[_turn(place)] * conditions.shaper_factor if fabric else link_rate
        if abs(qdisc["bits_per_second"] - rate) > RATE_SHARE * rate:
            yield _differs(f"rate of the shaper of {place}", f"{rate:.0f} b/s", qdisc["bits_per_second"])
        burst = conditions.shaper_burst_bytes
        if fabric and abs(qdisc["burst_bytes"] - burst) > BURST_SHARE * burst:
            yield _differs(f"burst of the shaper of {place}", f"{burst} bytes", qdisc["burst_bytes"])


def _sysctls(conditions: Conditions, record: Json) -> Iterator[str]:
    for place, _, reading in _readings(record):
        for name, setting in conditions.sysctls.items():
            actual = reading["sysctls"].get(name)
            # The kernel prints vectors with tabs.
            if actual is None or actual.split() != setting.split():
                yield _differs(f"{name} of {place}", setting, actual)
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
    """Failures of the fastest handshake of the run, which must match the RTT of the network. Where the machine held the
    run up, that it was late says nothing of the network."""
    handshake = record["workload"].get("handshake_seconds")
    if not conditions.capabilities.delays or handshake is None or _repeated_every_syn(record):
        return
    least, most = handshake_range(conditions, record)  # including connections opened before any change
    most += 2 * conditions.moderation_seconds + HANDSHAKE_SLACK_SECONDS
    # The client's clock starts before connect() and ends after it, so the time is not below the RTT but for what the
    # fabric delivers early: the SYN, and the SYN-ACK.
    # Handshakes of QUIC compute keys, one after another where several begin together: no RTT bounds that from above.
    is_late = handshake > most and not is_over_udp(record) and not fidelity.assess(conditions, record).reasons
    if handshake < least - EARLY_SECONDS or is_late:
        yield f"fastest handshake: expected {least:.6f} to {most:.6f} s, found {handshake:.6f} s"


def _repeated_every_syn(record: Json) -> bool:
    """Whether even the fastest handshake waited for a SYN timer, by its length and by the kernels' counters."""
    handshake = record["workload"].get("handshake_seconds")
    if handshake is None or handshake < SYN_TIMER_SECONDS:
        return False
    return any(deltas(record, host, "nstat").get("TcpExtTCPSynRetrans", 0) > 0 for host in record["counters_after"])


_CHECKS: tuple[Callable[[Conditions, Json], Iterator[str]], ...] = (
    _mtu, mss_failures, live_mss_failures, frame_failures, _segments, nic_failures, _congestion_control, _nodelay,
    sizes_failures, _shaper, _sysctls, _clean_start, _rtt, network_failures, change_failures, aggregate_failures,
    remembered_failures, window_failures, pacing_failures, multipath_failures, fragment_failures,
    discovery_failures,
)  # fmt: skip
# On the user's own hosts, only conditions are checked that do not depend on other traffic or settings.
_ON_HOSTS: tuple[Callable[[Conditions, Json], Iterator[str]], ...] = (
    _mtu, mss_failures, live_mss_failures, _own_segments, _offloads, _qdisc, _live_congestion_control, _nodelay,
    sizes_failures, _sysctls, aggregate_failures, remembered_failures, pacing_failures, discovery_failures,
)  # fmt: skip
