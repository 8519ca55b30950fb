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
    largest = mtu
    routers = {name: mtu for name, (mtu, _) in _routers_asked(conditions).items()}
    if routers:
        links = topologies.drawn_links(_topology(conditions), conditions.hosts)
        ways = topologies.Ways(links, list(routers))
        for ends in zip(topologies.ends_of(links, one), topologies.ends_of(links, other), strict=False):
            largest = min(largest, *(routers[name] for name in ways.routers(*ends) or ()), largest)
    return largest


def narrowed(conditions: Conditions, pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether a router between two hosts of a pair takes less than both of them, so that no ceiling is that of their
    MTUs."""
    if not _routers_asked(conditions):
        return False
    paths = ((one, other, min(conditions.mtu[one], conditions.mtu[other])) for one, other in pairs)
    return any(through(conditions, one, other, mtu) < mtu for one, other, mtu in paths)


def _answer(record: Json) -> Json | None:
    answer: Json | None = record["rack"].get("network")
    return answer


def _topology(conditions: Conditions) -> Mapping[str, Any]:
    topology: Mapping[str, Any] = conditions.network.get("topology", {"kind": "rack"})
    return topology


def _routers_asked(conditions: Conditions) -> dict[str, tuple[int, str]]:
    """The requested MTU and ICMP setting of each router, by name."""
    routers = _topology(conditions).get("routers", ())
    return {router["name"]: (router.get("mtu", conditions.port_mtu), router.get("icmp", "on")) for router in routers}


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
    rack_host: Json = next((entry for entry in record["rack"]["hosts"] if entry["name"] == host), {})
    end = next((nic["end"] for nic in rack_host.get("nics", ()) if nic["interface"] == interface), host)
    link = _first_link(conditions, end)
    return [_nominal_rate(conditions, *link), *conditions.set_on(*link, "bits_per_second")]


def _differs(subject: str, setting: object, reading: object) -> str:
    return f"{subject}: requested {setting}, found {reading}"


def _links(conditions: Conditions, record: Json) -> Iterator[str]:
    expected = Counter(topologies.directed(_topology(conditions), conditions.hosts))
    ports = [(port["from"], port["to"]) for port in record["rack"]["network"]["ports"]]
    built = Counter(ports)
    for one, other in (expected - built).elements():
        yield f"links of the network: requested one from {one} to {other}, found none"
    for one, other in (built - expected).elements():
        yield f"links of the network: requested none from {one} to {other}, found one"


def _nics(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in the number of NICs of every host, as built and as read by the host itself."""
    links = topologies.drawn_links(_topology(conditions), conditions.hosts)
    answers = {answer["name"]: answer for answer in record["rack"].get("hosts", ())}
    for host in conditions.hosts:
        ends = topologies.ends_of(links, host)
        # Older agents do not report NICs and build one for each host.
        built_ends = [nic["end"] for nic in answers.get(host, {}).get("nics", [{"end": host}])]
        if built_ends != ends:
            yield _differs(f"NICs of {host}", ", ".join(ends), ", ".join(built_ends) or "none")
        for moment in ("before", "after"):
            count = len(record.get(moment, {}).get(host, {}).get("nics", ends[:1]))
            if count != len(ends):
                yield _differs(f"NICs that {host} reads {moment} the run", len(ends), count)


def _routers(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of routers: their MTUs, their links, and the filtering of their ICMP errors."""
    links = topologies.drawn_links(_topology(conditions), conditions.hosts)
    settings = _routers_asked(conditions)
    built = {router["name"]: router for router in record["rack"].get("routers", ())}
    if list(built) != list(settings):
        yield _differs("routers", ", ".join(settings) or "none", ", ".join(built) or "none")
        return
    for name, (mtu, icmp) in settings.items():
        if built[name]["mtu"] != mtu:
            yield _differs(f"MTU of router {name}", mtu, built[name]["mtu"])
        if built[name]["icmp"] != icmp:
            yield _differs(f"ICMP errors of router {name}", icmp, built[name]["icmp"])
        ends, built_ends = topologies.ends_of(links, name), [nic["end"] for nic in built[name]["nics"]]
        if built_ends != ends:
            yield _differs(f"NICs of router {name}", ", ".join(ends), ", ".join(built_ends) or "none")


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
        fewest = math.ceil(amount / (mtus[end] - HEADERS_BYTES[conditions.family]))
        if sent[end] < fewest:
            yield f"frames that {end} sent: expected {fewest} or more for {amount} bytes, found {sent[end]}"


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
        setting = _setting(conditions, port["from"], port["to"])
        for key, usual in (("jitter_seconds", 0.0), ("loss", 0.0), ("tagged", False)):
            if not _same(setting.get(key, usual), port[key]):
                yield _differs(f"{key} of the link of port {port['port']}", setting.get(key, usual), port[key])
        if "delay_seconds" in setting:
            delay = setting["delay_seconds"] + setting.get("phase_seconds", 0.0)
            if abs(port["delay_seconds"] - delay) > CLOCK_SECONDS:
                yield _differs(f"delay of the link of port {port['port']}", f"{delay:.9f} s", port["delay_seconds"])


def _shared_buffer(conditions: Conditions, record: Json) -> Iterator[str]:
    setting, reading = conditions.network.get("shared_buffer"), record["rack"]["network"]["shared_buffer"]
    if setting != reading:
        yield _differs("shared buffer of each switch", setting, reading)


def _queues(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures in discipline, limit and parameters of the queues of switches and routers; hosts' ports have none."""
    hosts = set(conditions.hosts)
    for port in record["rack"]["network"]["ports"]:
        name, built_queue = port["port"], port["queue"]
        if topologies.node_of(port["from"]) in hosts:
            if built_queue is not None:
                yield _differs(f"queue of the NIC {name}", "none", built_queue["kind"])
            continue
        setting = _setting(conditions, port["from"], port["to"])
        queue = dict(setting.get("queue", conditions.network.get("queue", {"kind": "taildrop"})))
        if "limit_frames" not in queue:
            queue["limit_bytes"] = setting.get("buffer_bytes", conditions.buffer_bytes)
        kind = None if built_queue is None else built_queue["kind"]
        if kind != queue["kind"]:
            yield _differs(f"queue of port {name}", queue["kind"], kind or "none")
            continue
        for key, value in queue.items():
            if not _same(value, built_queue.get(key)):
                yield _differs(f"{key} of the queue of port {name}", value, built_queue.get(key))


def _same(setting: Any, reading: Any) -> bool:
    """Whether two values are equal, up to rounding: the fabric keeps times in picoseconds."""
    if isinstance(setting, float) and isinstance(reading, int | float) and not isinstance(reading, bool):
        return math.isclose(setting, reading, rel_tol=1e-6)
    return bool(setting == reading)


def _rtt(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of the base RTT between the hosts furthest apart; not checked if single links have their own delay."""
    links = conditions.network.get("links", ())
    if any(not {"delay_seconds", "phase_seconds"}.isdisjoint(link) for link in links):
        return
    rtt = record["rack"]["network"]["rtt_seconds"]["most"]
    if abs(rtt - conditions.rtt_seconds) > CLOCK_SECONDS:
        yield _differs("base RTT of the hosts furthest apart", f"{conditions.rtt_seconds:.9f} s", f"{rtt:.9f} s")


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
    loads, readings = conditions.network.get("background", ()), record["measure"]["fabric"].get("background") or ()
    if len(loads) != len(readings):
        yield _differs("background loads", len(loads), len(readings))
        return
    seconds = record["measure"]["elapsed_seconds"]
    for load, reading in zip(loads, readings, strict=True):
        name = f"background from {load['from']} to {load['to']}"
        rate = load["bits_per_second"] or load["share"] * _rate(conditions, *_first_link(conditions, load["from"]))
        expected = rate * seconds / 8 / (load["frame_bytes"] + WIRE_OVERHEAD_BYTES)
        slack = 3 + BACKGROUND_SHARE * expected
        slack += SIGMAS * math.sqrt(expected) if load["process"] == "poisson" else 0
        least = 1 if load["process"] == "on-off" else expected - slack
        if not least <= reading["sent_frames"] <= expected + slack:
            yield _differs(name, f"about {expected:.0f} frames", reading["sent_frames"])


def _ecn(conditions: Conditions, record: Json) -> Iterator[str]:
    """Failures of ECN by the packets that arrive; not checked where other traffic arrives, too."""
    setting = conditions.sysctls.get(ECN_SYSCTL)
    if not conditions.capabilities.is_private or setting not in ("0", "1"):
        return
    for host in record["workload"]["receivers"]:
        nstat = deltas(record, host, "nstat")
        packets = sum(nstat.get(f"{layer}In{field}Pkts", 0) for layer in ("IpExt", "Ip6") for field in ECN_FIELDS)
        if setting == "0" and packets:
            yield f"packets with ECN that {host} received: expected none, found {packets}"
        if setting == "1" and not packets and is_bulk(conditions, record):
            yield f"packets with ECN that {host} received: expected some, found none"


_CHECKS: Sequence[Callable[[Conditions, Json], Iterator[str]]] = (
    _links, _nics, _routers, _by_nics, _ports, _queues, _impairments, _shared_buffer, _rtt, _losses, _background,
)  # fmt: skip
