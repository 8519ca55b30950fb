"""Conservation: whether all counts agree with the kernel's own. Record in, disagreements out.

Nothing is created and nothing disappears: for each port, received = sent + dropped + queued; the packets that a host's
interface sent are those that the fabric read from it; TCP's own counts match the frames on the wire, and so do the
messages of an application that counts them (`carried`). On the kernel testbed, everything that hosts sent was received
by hosts, or dropped by a switch port.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from framegauge.evidence import network
from framegauge.evidence.blocks import block_failures
from framegauge.evidence.bonds import members
from framegauge.evidence.carried import carried_failures
from framegauge.evidence.datagrams import datagram_failures
from framegauge.evidence.nic import QUIC, deltas, fabric_hosts, loopback_packets
from framegauge.evidence.quic import quic_failures
from framegauge.evidence.steady import Steady
from framegauge.quantities import print_bits_per_second
from framegauge.record import Record
from framegauge.testbeds.base import Conditions, Json

__all__ = ["caught_up", "ceiling", "disagreements"]

GOODPUT_SHARE = 0.002  # goodput this far above the ceiling is a broken meter, not a fast network

# Frames that a host sent: every TCP segment (the kernel counts retransmitted ones separately) and the rest.
_SENT = ("TcpOutSegs", "TcpRetransSegs", "UdpOutDatagrams", "Udp6OutDatagrams", "IcmpOutMsgs", "Icmp6OutMsgs")
# IP packets that a host took in, after GRO, counted by segments; nstat splits them by ECN field.
_RECEIVED = tuple(f"{layer}In{field}Pkts" for layer in ("IpExt", "Ip6") for field in ("NoECT", "ECT0", "ECT1", "CE"))


def disagreements(conditions: Conditions, record: Json) -> list[str]:
    """One line for each balance that does not close; empty if everything is accounted for."""
    if not conditions.capabilities.is_private:
        # Other traffic on these hosts cannot be counted separately.
        failures = [*datagram_failures(conditions, record), *quic_failures(conditions, record)]
        return [*failures, *_ceilings(conditions, record)]
    if conditions.capabilities.is_virtual:
        return [*_ports(record), *_ceilings(conditions, record)]  # hosts have no counters of their own
    if record["measure"]["fabric"] is None:
        links = _veth(record) if len(record["counters_before"]) == 2 else _bridge(record)
        return [*links, *datagram_failures(conditions, record), *quic_failures(conditions, record)]
    checks = (
        _interfaces(record),
        _stack(conditions, record),
        _ceilings(conditions, record),
        block_failures(conditions, record),
        datagram_failures(conditions, record),
        quic_failures(conditions, record),
    )
    return [*_ports(record), *itertools.chain(*checks), *carried_failures(conditions, record)]


def _unequal(name: str, left: int, meaning: str, right: int) -> Iterator[str]:
    if left != right:
        yield f"{name}: {left} is not {meaning}: {right}"


def _ports(record: Json) -> Iterator[str]:
    for port in record["measure"]["fabric"]["ports"]:
        for unit in ("frames", "bytes"):
            received = port[f"received_{unit}"]
            total = port[f"sent_{unit}"] + port[f"dropped_{unit}"] + port[f"queued_{unit}"]
            yield from _unequal(f"{unit} received at {port['port']}", received, "sent + dropped + queued", total)


def _interfaces(record: Json) -> Iterator[str]:
    for host in fabric_hosts(record):
        name = host["host"]
        kernel = deltas(record, name, "interface")
        yield from _unequal(
            f"packets sent by the interface of {name}",
            kernel["tx_packets"],
            "the number that the fabric read",
            host["read_packets"],
        )
        yield from _unequal(
            f"packets received by the interface of {name}",
            kernel["rx_packets"],
            "the number that the fabric wrote",
            host["written_packets"],
        )


def _stack(conditions: Conditions, record: Json) -> Iterator[str]:
    for host in fabric_hosts(record):
        name = host["host"]
        nstat = deltas(record, name, "nstat")
        dropped = deltas(record, name, "interface")["tx_dropped"]
        # Programs of one host may talk to each other; the loopback carries each segment as one packet.
        within = loopback_packets(record, name)
        sent, received = _total(nstat, _SENT) - within + _further(nstat), _total(nstat, _RECEIVED) - within
        sent += _batched(record, name)
        # The kernel counts a repeated SYN-ACK as sent and as retransmitted (tcp_rtx_synack), a SYN only as the latter.
        twice = max(0, min(sent - host["read_frames"], nstat.get("TcpExtTCPSynRetrans", 0)))
        # After ring drops the number of frames in a dropped aggregate is unknown; fidelity excludes such a run.
        if not dropped:
            yield from _unequal(
                f"segments sent by the stack of {name}",
                sent - twice,
                "the number that the fabric read",
                host["read_frames"],
            )
        # With an overlay the stack takes in the outer and the inner packet.
        layers = 1 if conditions.overlay is None else 2
        # An aggregate that comes through a TAP counts as one packet, because the stack does not know its frames.
        yield from _unequal(
            f"packets taken by the stack of {name}",
            received,
            ("twice " if layers == 2 else "") + "the number that the fabric wrote",
            layers * host["written_packets"],
        )


def _total(counters: Mapping[str, int], names: tuple[str, ...]) -> int:
    return sum(counters.get(name, 0) for name in names)


def _further(nstat: Mapping[str, int]) -> int:
    """The packets by which fragments are more than the datagrams that were taken apart."""
    return sum(nstat.get(f"{layer}FragCreates", 0) - nstat.get(f"{layer}FragOKs", 0) for layer in ("Ip", "Ip6"))


def _batched(record: Json, host: str) -> int:
    """The datagrams by which those that a program handed over at once are more than the kernel counted."""
    return int(record["workload"].get("batched", {}).get(host, 0))


def _veth(record: Json) -> Iterator[str]:
    names = list(record["counters_before"])
    for sender, receiver in (names, names[::-1]):
        sent = deltas(record, sender, "interface")["tx_packets"]
        took: Mapping[str, Any] = deltas(record, receiver, "interface")
        # A dropped packet is also counted as received, or not, depending on where it was dropped.
        if not took["rx_packets"] <= sent <= took["rx_packets"] + took["rx_dropped"]:
            yield (
                f"packets sent by the interface of {sender}: {sent} is not received + dropped at {receiver}: "
                f"{took['rx_packets']} + {took['rx_dropped']}"
            )


def _bridge(record: Json) -> Iterator[str]:
    """Disagreements with three or more hosts on the kernel's bridge: segments must be received, or drops be on record.

    Segments are compared, not packets, because a shaped port splits aggregates. A port counts drops in packets, each of
    which may be an aggregate, so drops explain a difference without giving its size.
    """
    hosts = list(record["counters_before"])
    within = sum(loopback_packets(record, host) for host in hosts)
    counts = [deltas(record, host, "nstat") for host in hosts]
    sent = sum(_total(counters, _SENT) + _further(counters) for counters in counts) - within
    sent += sum(_batched(record, host) for host in hosts)
    received = sum(_total(counters, _RECEIVED) for counters in counts) - within
    interfaces = [deltas(record, host, "interface") for host in hosts]
    drops = sum(counters["rx_dropped"] + counters["tx_dropped"] for counters in interfaces)
    # Unshaped ports do not drop.
    drops += sum(port["drops"] for port in record["measure"]["kernel_ports"] or [])
    drops += sum(record["after"][host]["qdisc"]["drops"] - record["before"][host]["qdisc"]["drops"] for host in hosts)
    if received > sent:
        yield f"segments received by all hosts: {received} is more than the number sent: {sent}"
    elif received < sent and not drops:
        yield f"segments received by all hosts: {received} is not the number sent: {sent}, and nothing was dropped"


def ceiling(conditions: Conditions, record: Json) -> float | None:
    """The goodput that the links of all NICs that a run uses (of a bond: all members) leave to a host, in bits per
    second, with the smallest MTU of each network; None if they are unshaped, a router between hosts takes less than
    their MTU, something is changed during the run, or TCP is not what carries the data: its headers are others."""
    work: Record = record["workload"]
    if work.get("transport") == QUIC or conditions.changes:
        return None
    if network.narrowed(conditions, itertools.product(work["senders"], work["received_bytes"])):
        return None
    goodputs = [entry["goodput_bits_per_second"] for entry in record["rack"]["ceilings"].values()]
    if None in goodputs:
        return None
    lowest: float = min(goodputs)
    second: float = record["rack"].get("storage_ceiling", {}).get("goodput_bits_per_second", lowest)
    nics: int = record["workload"].get("nics", 1)
    return lowest * members(conditions) + (nics - 1) * second


def _ceilings(conditions: Conditions, record: Json) -> Iterator[str]:
    """Disagreements of goodput with the ceiling: no receiver can take in more than its link carries with the largest
    frames that can reach it.

    It is not checked on the kernel testbed, whose tbf lets its burst through at once: short transfers exceed any rate.
    """
    work: Record = record["workload"]
    active = work.get("active_seconds")
    if not active:
        return
    ends = {*work["senders"], *work["received_bytes"]}
    for receiver, limit in _limits(conditions, record):
        goodput = 8.0 * work["received_bytes"][receiver] / active
        if goodput > limit * (1 + GOODPUT_SHARE):
            mtu = min(conditions.mtu[receiver], max(conditions.mtu[name] for name in ends - {receiver}))
            yield f"goodput of {receiver} at MTU {mtu}: {goodput:.0f} b/s is above the ceiling: {limit:.0f} b/s"


def caught_up(conditions: Conditions, record: Json, part: Steady | None) -> Iterator[str]:
    """A reason if the steady part of a run carried more than the links to its receivers can: what came too late before
    it, as the machine held something up, was carried in it. The whole run does not show that."""
    if part is None or record["measure"]["fabric"] is None or conditions.changes:
        return
    limits = dict(_limits(conditions, record))
    limit = sum(limits.values())
    are_known = limits.keys() == record["workload"]["received_bytes"].keys()
    if are_known and part.bits_per_second > limit * (1 + GOODPUT_SHARE):
        goodput, ceiling = map(print_bits_per_second, (part.bits_per_second, limit))
        yield f"goodput of the steady part: at most the {ceiling} of the links, found {goodput}"


def _limits(conditions: Conditions, record: Json) -> Iterator[tuple[str, float]]:
    """The receivers of a run whose ceiling is known, each with that."""
    work: Record = record["workload"]
    ends = {*work["senders"], *work["received_bytes"]}
    highest = {name: _highest(conditions, record, name) for name in record["rack"]["ceilings"]}
    limits = sorted((_number(highest[name]), name) for name in highest if name in ends)
    lines = _lines(conditions, record)
    for receiver in work["received_bytes"]:
        own_limit, other_limits = highest[receiver], [limit for limit, name in limits[-2:] if name != receiver]
        # None sorts first: of no other host may it be unknown.
        unknown = any(limit < 0 for limit, name in limits[:2] if name != receiver)
        if own_limit is not None and not unknown and other_limits:
            yield receiver, min(own_limit, max(other_limits)) * lines.get(receiver, 1.0)


def _number(limit: float | None) -> float:
    return -1.0 if limit is None else limit


def _highest(conditions: Conditions, record: Json, host: str) -> float | None:
    """The highest ceiling of the MTUs that a host has in the run."""
    first: float | None = record["rack"]["ceilings"][host]["goodput_bits_per_second"]
    goodputs = [
        later_ceiling["goodput_bits_per_second"]
        for later_ceiling in record["rack"].get("later_ceilings", ())
        if later_ceiling["mtu"] in (*conditions.mtus(host)[1:], *conditions.mtus(host, 2)[1:])
    ]
    if (storage := record["rack"].get("storage_ceiling")) is not None:
        goodputs.append(storage["goodput_bits_per_second"])
    return first if first is None else max([first, *goodputs])


def _lines(conditions: Conditions, record: Json) -> dict[str, float]:
    """By host: the total rate of the links to it that the run uses, as a multiple of the default link's, to which
    ceilings refer. Empty where nothing is known of the network."""
    network = record["rack"].get("network")
    if network is None or not conditions.bits_per_second:
        return {}
    nic_count = max(record["workload"].get("nics", 1), members(conditions))
    together: dict[str, int] = {}
    for port in network["ports"]:
        # An end of a link is a host's name, with the number of the NIC where there are several: h1, or h1.1, h1.2.
        node, _, number = port["to"].partition(".")
        if int(number or 1) <= nic_count:
            rates = [port["bits_per_second"], *conditions.set_on(port["from"], port["to"], "bits_per_second")]
            together[node] = together.get(node, 0) + max(rates)
    return {node: max(1.0, rate / conditions.bits_per_second) for node, rate in together.items()}
