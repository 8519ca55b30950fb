"""Conservation: does every count agree with the kernel's own? Pure: record → disagreements.

Nothing is created and nothing vanishes: per port received = sent + dropped + queued; what a host's
interface sent is what the fabric read from it; TCP's own counts are the frames on the wire. On the
kernel testbed one end's transmissions are the other end's receptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framegauge.testbeds.base import Conditions, Json

__all__ = ["disagreements"]

GOODPUT_SHARE = 0.002  # goodput this far above the ceiling is a broken meter, not a fast network

# Frames that a host sent: every TCP segment (the kernel counts retransmitted ones apart) and the rest.
_SENT = ("TcpOutSegs", "TcpRetransSegs", "UdpOutDatagrams", "Udp6OutDatagrams", "IcmpOutMsgs", "Icmp6OutMsgs")
# IP packets that a host took in, after GRO, counted one a segment; nstat splits them by ECN field.
_RECEIVED = tuple(f"{layer}In{field}Pkts" for layer in ("IpExt", "Ip6") for field in ("NoECT", "ECT0", "ECT1", "CE"))


def disagreements(conditions: Conditions, record: Json) -> list[str]:
    """One line for each balance that does not close; empty: everything is accounted for."""
    if record["measure"]["fabric"] is None:
        return list(_veth(record))
    return [*_ports(record), *_interfaces(record), *_stack(record), *_ceiling(conditions, record)]


def _deltas(record: Json, host: str, group: str) -> dict[str, int]:
    before, after = (record[f"counters_{when}"][host][group] for when in ("before", "after"))
    return {name: after[name] - before.get(name, 0) for name in after}


def _unequal(what: str, left: int, meaning: str, right: int) -> Iterator[str]:
    if left != right:
        yield f"{what}: {left} is not {meaning}: {right}"


def _ports(record: Json) -> Iterator[str]:
    for port in record["measure"]["fabric"]["ports"]:
        for unit in ("frames", "bytes"):
            received = port[f"received_{unit}"]
            rest = port[f"sent_{unit}"] + port[f"dropped_{unit}"] + port[f"queued_{unit}"]
            yield from _unequal(f"{unit} received at {port['port']}", received, "sent + dropped + queued", rest)


def _interfaces(record: Json) -> Iterator[str]:
    for host in record["measure"]["fabric"]["hosts"]:
        name = host["host"]
        kernel = _deltas(record, name, "interface")
        yield from _unequal(
            f"packets sent by the interface of {name}",
            kernel["tx_packets"],
            "those the fabric read",
            host["read_packets"],
        )
        yield from _unequal(
            f"packets received by the interface of {name}",
            kernel["rx_packets"],
            "those the fabric wrote",
            host["written_packets"],
        )


def _stack(record: Json) -> Iterator[str]:
    for host in record["measure"]["fabric"]["hosts"]:
        name = host["host"]
        nstat = _deltas(record, name, "nstat")
        dropped = _deltas(record, name, "interface")["tx_dropped"]
        sent, received = _total(nstat, _SENT), _total(nstat, _RECEIVED)
        # With ring drops the frames of a dropped aggregate are not known; fidelity has excluded the run.
        if not dropped:
            yield from _unequal(
                f"segments sent by the stack of {name}", sent, "those the fabric read", host["read_frames"]
            )
        yield from _unequal(
            f"packets taken by the stack of {name}", received, "those the fabric wrote", host["written_frames"]
        )


def _total(counters: Mapping[str, int], names: tuple[str, ...]) -> int:
    return sum(counters.get(name, 0) for name in names)


def _veth(record: Json) -> Iterator[str]:
    names = list(record["counters_before"])
    for sender, receiver in (names, names[::-1]):
        sent = _deltas(record, sender, "interface")["tx_packets"]
        took: Mapping[str, Any] = _deltas(record, receiver, "interface")
        # Whether a dropped packet is also counted as received depends on where it was dropped.
        if not took["rx_packets"] <= sent <= took["rx_packets"] + took["rx_dropped"]:
            yield (
                f"packets sent by the interface of {sender}: {sent} is not received + dropped at {receiver}: "
                f"{took['rx_packets']} + {took['rx_dropped']}"
            )


def _ceiling(conditions: Conditions, record: Json) -> Iterator[str]:
    ceilings = [each["goodput_bits_per_second"] for each in record["rack"]["ceilings"].values()]
    result = record["workload"].get("result", {})
    active = result.get("active_seconds")
    if None in ceilings or not active:
        return
    goodput = 8.0 * record["workload"]["bytes"] / active
    limit = min(ceilings)
    if goodput > limit * (1 + GOODPUT_SHARE):
        mtu = min(conditions.mtu.values())
        yield f"goodput at MTU {mtu}: {goodput:.0f} b/s is above the ceiling: {limit:.0f} b/s"
