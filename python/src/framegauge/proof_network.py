"""Proof of the network: was it joined, filled and shaped as asked? Pure: record → failures.

What a port is comes from the fabric that ran (`network` of `rack.up`'s answer), what it did from its counters. An
agent that does not tell is believed only where nothing but the default was asked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from framegauge import disciplines, topologies
from framegauge.proof_nic import deltas, is_bulk
from framegauge.testbeds.base import Conditions, Json

__all__ = ["handshake_range", "network_failures", "network_readings"]

ECN_SYSCTL = "net.ipv4.tcp_ecn"
ECN_FIELDS = ("ECT0", "ECT1", "CE")  # of packets whose sender's TCP has ECN (RFC 3168)
CLOCK_SECONDS = 1e-8  # of an RTT: each link's delay is rounded to a picosecond
SIGMAS = 6.0  # of what is drawn: one honest run in 10^9 differs by more
WIRE_OVERHEAD_BYTES = 20  # preamble, start delimiter and gap, besides frame_bytes
BACKGROUND_SHARE = 0.05  # of its frames, for what is under way when the meters begin and end
MOST_LINES = 3  # of one kind: when one port is wrong, mostly all are


def network_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each thing about the network that the record does not prove."""
    yield from _ecn(conditions, record)
    if conditions.testbed != "fabric":
        return
    if _answer(record) is None:
        if conditions.network:
            yield f"network: asked {', '.join(conditions.network)}, found an agent that does not tell what it built"
        return
    for check in _CHECKS:
        lines = list(check(conditions, record))
        yield from lines[:MOST_LINES]
        if len(lines) > MOST_LINES:
            yield f"{lines[0].partition(':')[0]}: and {len(lines) - MOST_LINES} more like it"


def network_readings(record: Json) -> dict[str, Any]:
    """`marked_frames`: how many frames switches marked, where hosts have ECN and a queue marks."""
    answer, fabric = _answer(record), record["measure"]["fabric"]
    if answer is None or fabric is None or record["conditions"].get("sysctls", {}).get(ECN_SYSCTL) != "1":
        return {}
    if not any(port["queue"] is not None and disciplines.marks(port["queue"]) for port in answer["ports"]):
        return {}
    return {"marked_frames": sum(port["marked_frames"] for port in fabric["ports"])}


def handshake_range(conditions: Conditions, record: Json) -> tuple[float, float]:
    """The least and the most that propagation alone takes there and back, in seconds."""
    answer = _answer(record)
    if answer is None:
        return conditions.rtt_seconds, conditions.rtt_seconds
    least = answer["rtt_seconds"]["least"]
    for port in answer["ports"] if conditions.changes else ():
        later = conditions.set_on(port["from"], port["to"], "delay_seconds")
        least -= max(0.0, port["delay_seconds"] - min(later, default=port["delay_seconds"]))
    return max(0.0, least), answer["rtt_seconds"]["most"]


def _answer(record: Json) -> Json | None:
    found: Json | None = record["rack"].get("network")
    return found


def _topology(conditions: Conditions) -> Mapping[str, Any]:
    found: Mapping[str, Any] = conditions.network.get("topology", {"kind": "rack"})
    return found


def _setting(conditions: Conditions, one: str, other: str) -> dict[str, Any]:
    return topologies.setting(conditions.network.get("links", ()), one, other)


def _rate(conditions: Conditions, one: str, other: str) -> int:
    found = _setting(conditions, one, other)
    rate: int = found.get("bits_per_second", conditions.bits_per_second or 0)
    return topologies.skewed(rate, found.get("skew_ppm", 0))


def _first_rate(conditions: Conditions, host: str) -> int:
    """Of a host's own link, the first if it has two."""
    ways = topologies.directed(_topology(conditions), conditions.hosts)
    return next(_rate(conditions, one, other) for one, other in ways if one == host)


def _differs(where: str, asked: object, found: object) -> str:
    return f"{where}: asked {asked}, found {found}"


def _links(conditions: Conditions, record: Json) -> Iterator[str]:
    asked = Counter(topologies.directed(_topology(conditions), conditions.hosts))
    ports = [(port["from"], port["to"]) for port in record["rack"]["network"]["ports"]]
    found = Counter(ports)
    for one, other in (asked - found).elements():
        yield f"links of the network: asked one from {one} to {other}, found none"
    for one, other in (found - asked).elements():
        yield f"links of the network: asked none from {one} to {other}, found one"


def _ports(conditions: Conditions, record: Json) -> Iterator[str]:
    """Rate and MTU of every port; a host's own MTU is proven by its frames."""
    hosts = set(conditions.hosts)
    for port in record["rack"]["network"]["ports"]:
        one, other = port["from"], port["to"]
        rate = _rate(conditions, one, other)
        if abs(port["bits_per_second"] - rate) > 1:
            yield _differs(f"rate of port {port['port']}", f"{rate} b/s", port["bits_per_second"])
        mtu = _setting(conditions, one, other).get("mtu", conditions.port_mtu)
        if one not in hosts and port["mtu"] != mtu:
            yield _differs(f"MTU of port {port['port']}", mtu, port["mtu"])


def _impairments(conditions: Conditions, record: Json) -> Iterator[str]:
    """What makes links other than ideal; of the delay what is not the link's part of the RTT."""
    for port in record["rack"]["network"]["ports"]:
        asked = _setting(conditions, port["from"], port["to"])
        for key, usual in (("jitter_seconds", 0.0), ("loss", 0.0), ("tagged", False)):
            if not _same(asked.get(key, usual), port[key]):
                yield _differs(f"{key} of the link of port {port['port']}", asked.get(key, usual), port[key])
        if "delay_seconds" in asked:
            delay = asked["delay_seconds"] + asked.get("phase_seconds", 0.0)
            if abs(port["delay_seconds"] - delay) > CLOCK_SECONDS:
                yield _differs(f"delay of the link of port {port['port']}", f"{delay:.9f} s", port["delay_seconds"])


def _shared_buffer(conditions: Conditions, record: Json) -> Iterator[str]:
    asked, found = conditions.network.get("shared_buffer"), record["rack"]["network"]["shared_buffer"]
    if asked != found:
        yield _differs("shared buffer of each switch", asked, found)


def _queues(conditions: Conditions, record: Json) -> Iterator[str]:
    """Discipline, limit and every number that was asked, of every switch port; a host's NIC has none."""
    hosts = set(conditions.hosts)
    for port in record["rack"]["network"]["ports"]:
        name, found = port["port"], port["queue"]
        if port["from"] in hosts:
            if found is not None:
                yield _differs(f"queue of the NIC {name}", "none", found["kind"])
            continue
        setting = _setting(conditions, port["from"], port["to"])
        asked = dict(setting.get("queue", conditions.network.get("queue", {"kind": "taildrop"})))
        if "limit_frames" not in asked:
            asked["limit_bytes"] = setting.get("buffer_bytes", conditions.buffer_bytes)
        kind = None if found is None else found["kind"]
        if kind != asked["kind"]:
            yield _differs(f"queue of port {name}", asked["kind"], kind or "none")
            continue
        for key, value in asked.items():
            if not _same(value, found.get(key)):
                yield _differs(f"{key} of the queue of port {name}", value, found.get(key))


def _same(asked: Any, found: Any) -> bool:
    """Times are kept in picoseconds, so that the last digits of a number may differ."""
    if isinstance(asked, float) and isinstance(found, int | float) and not isinstance(found, bool):
        return math.isclose(asked, found, rel_tol=1e-6)
    return bool(asked == found)


def _rtt(conditions: Conditions, record: Json) -> Iterator[str]:
    """Between the hosts that are furthest apart it is what was asked, unless single links have a delay of their own."""
    links = conditions.network.get("links", ())
    if any(not {"delay_seconds", "phase_seconds"}.isdisjoint(each) for each in links):
        return
    found = record["rack"]["network"]["rtt_seconds"]["most"]
    if abs(found - conditions.rtt_seconds) > CLOCK_SECONDS:
        yield _differs("base RTT of the hosts furthest apart", f"{conditions.rtt_seconds:.9f} s", f"{found:.9f} s")


def _losses(conditions: Conditions, record: Json) -> Iterator[str]:
    ends = {port["port"]: (port["from"], port["to"]) for port in record["rack"]["network"]["ports"]}
    for port in record["measure"]["fabric"]["ports"]:
        if port["port"] not in ends:
            continue
        share = _setting(conditions, *ends[port["port"]]).get("loss", 0.0)
        sent, lost = port["sent_frames"], port.get("lost_frames", 0)
        slack = SIGMAS * math.sqrt(sent * share * (1 - share))
        # A rare loss is no normal distribution: three more, or fewer.
        if abs(lost - share * sent) > (slack + 3 if share else 0):
            yield _differs(f"frames lost behind port {port['port']}", f"{share:g} of {sent}", lost)


def _background(conditions: Conditions, record: Json) -> Iterator[str]:
    asked, found = conditions.network.get("background", ()), record["measure"]["fabric"].get("background") or ()
    if len(asked) != len(found):
        yield _differs("background loads", len(asked), len(found))
        return
    seconds = record["measure"]["elapsed_seconds"]
    for load, told in zip(asked, found, strict=True):
        name = f"background from {load['from']} to {load['to']}"
        rate = load["bits_per_second"] or load["share"] * _first_rate(conditions, load["from"])
        expected = rate * seconds / 8 / (load["frame_bytes"] + WIRE_OVERHEAD_BYTES)
        slack = 3 + BACKGROUND_SHARE * expected
        slack += SIGMAS * math.sqrt(expected) if load["process"] == "poisson" else 0
        least = 1 if load["process"] == "on-off" else expected - slack
        if not least <= told["sent_frames"] <= expected + slack:
            yield _differs(name, f"about {expected:.0f} frames", told["sent_frames"])


def _ecn(conditions: Conditions, record: Json) -> Iterator[str]:
    """What arrives says whether the senders' TCP has ECN; where others' traffic arrives too, the reading must do."""
    asked = conditions.sysctls.get(ECN_SYSCTL)
    if conditions.testbed == "hosts" or asked not in ("0", "1"):
        return
    for host in record["workload"]["receivers"]:
        nstat = deltas(record, host, "nstat")
        found = sum(nstat.get(f"{layer}In{field}Pkts", 0) for layer in ("IpExt", "Ip6") for field in ECN_FIELDS)
        if asked == "0" and found:
            yield f"packets with ECN that {host} received: expected none, found {found}"
        if asked == "1" and not found and is_bulk(conditions, record):
            yield f"packets with ECN that {host} received: expected some, found none"


_CHECKS: Sequence[Callable[[Conditions, Json], Iterator[str]]] = (
    _links, _ports, _queues, _impairments, _shared_buffer, _rtt, _losses, _background,
)  # fmt: skip
