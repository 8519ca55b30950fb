"""Proof that the network was joined, loaded and shaped as requested. Record in, failures out.

The settings of ports come from the fabric that ran (`network` of the answer of `rack.up`), their activity from its
counters. An agent that does not report its network is accepted only if all settings are defaults.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from framegauge.evidence.nic import HEADERS_BYTES, deltas, is_bulk
from framegauge.networks import disciplines, topologies
from framegauge.testbeds.base import Conditions, Json

__all__ = ["handshake_range", "narrowed", "network_failures", "network_readings", "own_rates", "through"]

ECN_SYSCTL = "net.ipv4.tcp_ecn"
ECN_FIELDS = ("ECT0", "ECT1", "CE")  # of packets whose sender uses ECN (RFC 3168)
CLOCK_SECONDS = 1e-8  # tolerance of an RTT, because each link's delay is rounded to a picosecond
SIGMAS = 6.0  # tolerance of random draws: one correct run in 10^9 differs by more
SMALLEST_WIRE_BITS = 8 * 84  # of a frame of 64 bytes, with preamble and gap
WIRE_OVERHEAD_BYTES = 20  # preamble, start delimiter and gap, besides frame_bytes
BACKGROUND_SHARE = 0.05  # tolerance of its frames, for those under way when the meters begin and end
MOST_LINES = 3  # of one kind, because usually all ports are wrong in the same way


def network_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each property of the network that the record does not prove."""
    yield from _ecn(conditions, record)
    if not conditions.capabilities.has_fabric:
        return
    if _answer(record) is None:
        if conditions.network:
            yield f"network: requested {', '.join(conditions.network)}, found an agent that does not report its network"
        return
    for check in _CHECKS:
        lines = list(check(conditions, record))
        yield from lines[:MOST_LINES]
        if len(lines) > MOST_LINES:
            yield f"{lines[0].partition(':')[0]}: and {len(lines) - MOST_LINES} more of this kind"


def network_readings(record: Json) -> dict[str, Any]:
    """`marked_frames`: the number of frames that switches marked, if hosts use ECN and a queue marks."""
    answer, fabric = _answer(record), record["measure"]["fabric"]
    if answer is None or fabric is None or record["conditions"].get("sysctls", {}).get(ECN_SYSCTL) != "1":
        return {}
    if not any(port["queue"] is not None and disciplines.marks(port["queue"]) for port in answer["ports"]):
        return {}
    return {"marked_frames": sum(port["marked_frames"] for port in fabric["ports"])}


def handshake_range(conditions: Conditions, record: Json) -> tuple[float, float]:
    """The least and the most RTT by propagation alone, in seconds."""
    answer = _answer(record)
    if answer is None:
        return conditions.rtt_seconds, conditions.rtt_seconds
    least = answer["rtt_seconds"]["least"]
    for port in answer["ports"] if conditions.changes else ():
        later = conditions.set_on(port["from"], port["to"], "delay_seconds")
        least -= max(0.0, port["delay_seconds"] - min(later, default=port["delay_seconds"]))
    return max(0.0, least), answer["rtt_seconds"]["most"]


def through(conditions: Conditions, one: str, other: str, mtu: int) -> int:
    """The largest packet up to `mtu` that gets from one host to another, by any pair of NICs of the same number."""
    found = mtu
    routers = {name: mtu for name, (mtu, _) in _routers_asked(conditions).items()}
    if routers:
        links = topologies.drawn_links(_topology(conditions), conditions.hosts)
        ways = topologies.Ways(links, list(routers))
        for ends in zip(topologies.ends_of(links, one), topologies.ends_of(links, other), strict=False):
            found = min(found, *(routers[name] for name in ways.routers(*ends) or ()), found)
    return found


def narrowed(conditions: Conditions, pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether a router between two hosts of a pair takes less than both of them, so that no ceiling is that of their
    MTUs."""
    if not _routers_asked(conditions):
        return False
    both = ((one, other, min(conditions.mtu[one], conditions.mtu[other])) for one, other in pairs)
    return any(through(conditions, one, other, mtu) < mtu for one, other, mtu in both)


def _answer(record: Json) -> Json | None:
    found: Json | None = record["rack"].get("network")
    return found


def _topology(conditions: Conditions) -> Mapping[str, Any]:
    found: Mapping[str, Any] = conditions.network.get("topology", {"kind": "rack"})
    return found


def _routers_asked(conditions: Conditions) -> dict[str, tuple[int, str]]:
    """The requested MTU and ICMP setting of each router, by name."""
    asked = _topology(conditions).get("routers", ())
    return {each["name"]: (each.get("mtu", conditions.port_mtu), each.get("icmp", "on")) for each in asked}


def _setting(conditions: Conditions, one: str, other: str) -> dict[str, Any]:
    return topologies.setting(conditions.network.get("links", ()), one, other)


def _nominal_rate(conditions: Conditions, one: str, other: str) -> int:
    rate: int = _setting(conditions, one, other).get("bits_per_second", conditions.bits_per_second or 0)
    return rate


def _rate(conditions: Conditions, one: str, other: str) -> int:
    ppm = _setting(conditions, one, other).get("skew_ppm", 0)
    return topologies.skewed(_nominal_rate(conditions, one, other), ppm)


def _first_link(conditions: Conditions, end: str) -> tuple[str, str]:
    """The link of a NIC; a host's name stands for its first NIC."""
    ways = topologies.directed(_topology(conditions), conditions.hosts)
    return next((one, other) for one, other in ways if end in (one, topologies.node_of(one)))


def own_rates(conditions: Conditions, record: Json, host: str, interface: str) -> list[int]:
    """The rates requested in turn for the link of a host's NIC, without skew, in bits per second; 0: unshaped."""
    told: Json = next((each for each in record["rack"]["hosts"] if each["name"] == host), {})
    end = next((nic["end"] for nic in told.get("nics", ()) if nic["interface"] == interface), host)
    link = _first_link(conditions, end)
    return [_nominal_rate(conditions, *link), *conditions.set_on(*link, "bits_per_second")]


def _differs(where: str, asked: object, found: object) -> str:
    return f"{where}: requested {asked}, found {found}"


def _links(conditions: Conditions, record: Json) -> Iterator[str]:
    asked = Counter(topologies.directed(_topology(conditions), conditions.hosts))
    ports = [(port["from"], port["to"]) for port in record["rack"]["network"]["ports"]]
    found = Counter(ports)
    for one, other in (asked - found).elements():
        yield f"links of the network: requested one from {one} to {other}, found none"
    for one, other in (found - asked).elements():
        yield f"links of the network: requested none from {one} to {other}, found one"


def _nics(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the number of NICs of every host, as built and as read by the host itself."""
    links = topologies.drawn_links(_topology(conditions), conditions.hosts)
    told = {each["name"]: each for each in record["rack"].get("hosts", ())}
    for host in conditions.hosts:
        asked = topologies.ends_of(links, host)
        # Older agents do not report NICs and build one for each host.
        found = [nic["end"] for nic in told.get(host, {}).get("nics", [{"end": host}])]
        if found != asked:
            yield _differs(f"NICs of {host}", ", ".join(asked), ", ".join(found) or "none")
        for when in ("before", "after"):
            count = len(record.get(when, {}).get(host, {}).get("nics", asked[:1]))
            if count != len(asked):
                yield _differs(f"NICs that {host} reads {when} the run", len(asked), count)


def _routers(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of routers: their MTUs, their links, and the filtering of their ICMP errors."""
    links = topologies.drawn_links(_topology(conditions), conditions.hosts)
    asked = _routers_asked(conditions)
    told = {each["name"]: each for each in record["rack"].get("routers", ())}
    if list(told) != list(asked):
        yield _differs("routers", ", ".join(asked) or "none", ", ".join(told) or "none")
        return
    for name, (mtu, icmp) in asked.items():
        if told[name]["mtu"] != mtu:
            yield _differs(f"MTU of router {name}", mtu, told[name]["mtu"])
        if told[name]["icmp"] != icmp:
            yield _differs(f"ICMP errors of router {name}", icmp, told[name]["icmp"])
        ends, found = topologies.ends_of(links, name), [nic["end"] for nic in told[name]["nics"]]
        if found != ends:
            yield _differs(f"NICs of router {name}", ", ".join(ends), ", ".join(found) or "none")


def _by_nics(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures with several NICs per host: each must have sent as many frames as its flows' bytes need."""
    if record["workload"].get("nics", 1) == 1:
        return
    links = topologies.drawn_links(_topology(conditions), conditions.hosts)
    begins = {port["port"]: port["from"] for port in record["rack"]["network"]["ports"]}
    sent, carried, mtus = Counter[str](), Counter[str](), dict[str, int]()
    for port in record["measure"]["fabric"]["ports"]:
        sent[begins.get(port["port"], "")] += port["sent_frames"]
    for run in record["workload"]["runs"]:
        sender = run["server" if run["reverse"] else "client"]
        ends = topologies.ends_of(links, sender)
        if run["nic"] > len(ends):
            yield _differs(f"NICs of {sender} that flows went by", f"number {run['nic']}", f"{len(ends)} of them")
            continue
        carried[ends[run["nic"] - 1]] += run["result"]["bytes"]
        mtus[ends[run["nic"] - 1]] = max(conditions.mtus(sender, run["nic"]))
    for end, amount in carried.items():
        least = math.ceil(amount / (mtus[end] - HEADERS_BYTES[conditions.family]))
        if sent[end] < least:
            yield f"frames that {end} sent: expected {least} or more for {amount} bytes, found {sent[end]}"


def _ports(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in rate, MTU and ICMP filter of every port; the MTU of a host is proven by its frames."""
    hosts, routers = set(conditions.hosts), _routers_asked(conditions)
    for port in record["rack"]["network"]["ports"]:
        one, other = port["from"], port["to"]
        rate = _rate(conditions, one, other)
        if abs(port["bits_per_second"] - rate) > 1:
            yield _differs(f"rate of port {port['port']}", f"{rate} b/s", port["bits_per_second"])
        node = topologies.node_of(one)
        usual = _setting(conditions, one, other).get("mtu", conditions.port_mtu)
        mtu, icmp = routers.get(node, (usual, "on"))
        if node not in hosts and port["mtu"] != mtu:
            yield _differs(f"MTU of port {port['port']}", mtu, port["mtu"])
        # Older agents, which have no routers, filter nothing.
        filters = port.get("filters_icmp_errors", False)
        if filters != (icmp == "filtered"):
            yield _differs(f"ICMP errors at port {port['port']}", icmp, "filtered" if filters else "on")


def _impairments(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the impairments of links, and in delays that are set for single links."""
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
    """Failures in discipline, limit and parameters of the queues of switches and routers; hosts' ports have none."""
    hosts = set(conditions.hosts)
    for port in record["rack"]["network"]["ports"]:
        name, found = port["port"], port["queue"]
        if topologies.node_of(port["from"]) in hosts:
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
    """Whether two values are equal, up to rounding: the fabric keeps times in picoseconds."""
    if isinstance(asked, float) and isinstance(found, int | float) and not isinstance(found, bool):
        return math.isclose(asked, found, rel_tol=1e-6)
    return bool(asked == found)


def _rtt(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of the base RTT between the hosts furthest apart; not checked if single links have their own delay."""
    links = conditions.network.get("links", ())
    if any(not {"delay_seconds", "phase_seconds"}.isdisjoint(each) for each in links):
        return
    found = record["rack"]["network"]["rtt_seconds"]["most"]
    if abs(found - conditions.rtt_seconds) > CLOCK_SECONDS:
        yield _differs("base RTT of the hosts furthest apart", f"{conditions.rtt_seconds:.9f} s", f"{found:.9f} s")


def _losses(conditions: Conditions, record: Json) -> Iterator[str]:
    built = {port["port"]: port for port in record["rack"]["network"]["ports"]}
    for port in record["measure"]["fabric"]["ports"]:
        if port["port"] not in built:
            continue
        link = built[port["port"]]
        share = _setting(conditions, link["from"], link["to"]).get("loss", 0.0)
        sent, lost = port["sent_frames"], port.get("lost_frames", 0)
        slack = SIGMAS * math.sqrt(sent * share * (1 - share))
        # Rare losses are not normally distributed, so three more or fewer are accepted.
        # What was on its way when a change took the link down is lost with it.
        downs = conditions.set_on(link["from"], link["to"], "up").count(False)
        under_way = downs * (1 + link["delay_seconds"] * link["bits_per_second"] / SMALLEST_WIRE_BITS) if downs else 0
        if not -slack - 3 * bool(share) <= lost - share * sent <= slack + 3 * bool(share) + under_way:
            yield _differs(f"frames lost behind port {port['port']}", f"{share:g} of {sent}", lost)


def _background(conditions: Conditions, record: Json) -> Iterator[str]:
    asked, found = conditions.network.get("background", ()), record["measure"]["fabric"].get("background") or ()
    if len(asked) != len(found):
        yield _differs("background loads", len(asked), len(found))
        return
    seconds = record["measure"]["elapsed_seconds"]
    for load, told in zip(asked, found, strict=True):
        name = f"background from {load['from']} to {load['to']}"
        rate = load["bits_per_second"] or load["share"] * _rate(conditions, *_first_link(conditions, load["from"]))
        expected = rate * seconds / 8 / (load["frame_bytes"] + WIRE_OVERHEAD_BYTES)
        slack = 3 + BACKGROUND_SHARE * expected
        slack += SIGMAS * math.sqrt(expected) if load["process"] == "poisson" else 0
        least = 1 if load["process"] == "on-off" else expected - slack
        if not least <= told["sent_frames"] <= expected + slack:
            yield _differs(name, f"about {expected:.0f} frames", told["sent_frames"])


def _ecn(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of ECN by the packets that arrive; not checked where other traffic arrives, too."""
    asked = conditions.sysctls.get(ECN_SYSCTL)
    if not conditions.capabilities.is_private or asked not in ("0", "1"):
        return
    for host in record["workload"]["receivers"]:
        nstat = deltas(record, host, "nstat")
        found = sum(nstat.get(f"{layer}In{field}Pkts", 0) for layer in ("IpExt", "Ip6") for field in ECN_FIELDS)
        if asked == "0" and found:
            yield f"packets with ECN that {host} received: expected none, found {found}"
        if asked == "1" and not found and is_bulk(conditions, record):
            yield f"packets with ECN that {host} received: expected some, found none"


_CHECKS: Sequence[Callable[[Conditions, Json], Iterator[str]]] = (
    _links, _nics, _routers, _by_nics, _ports, _queues, _impairments, _shared_buffer, _rtt, _losses, _background,
)  # fmt: skip
