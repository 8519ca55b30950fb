"""An estimate as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framegauge.estimate.document import ALREADY, MAYBE, NO, NO_TRAFFIC, NOT_POSSIBLE, UNKNOWN
from framegauge.printable import one_line, wrapped
from framegauge.quantities import print_bits_per_second, print_bytes

__all__ = ["lines"]

Json = Mapping[str, Any]
WIDTH = 118
MOST_SOCKETS = 5
MOST_NAME = 60
ANSWERS = {
    NO_TRAFFIC: "nothing was carried: estimate again when there is load",
    ALREADY: "the MTU is that large already",
    NOT_POSSIBLE: "not possible: a NIC takes no MTU that large",
    NO: "don't: nothing here would be worth it",
    UNKNOWN: "cannot tell: packets that fill the MTU are opaque (see the notes)",
    MAYBE: "worth a study, which measures what really comes (framegauge study)",
}
SOURCES = {
    "sample": "from a measurement of sampled headers",
    "nic": "from a reading of the NIC's histogram",
    "connections": "from a reading of what the kernel counts for each connection",
}


def lines(document: Json) -> Iterator[str]:
    """All of it: each host, then all together."""
    for host in document["hosts"]:
        yield from _host(host)
    if len(document["hosts"]) > 1:
        yield "those that were read, together:" if document["lost"] else "all hosts together:"
        for each in document["total"]:
            yield from _target(each)
    for each in document["lost"]:
        yield f"{one_line(each['host'], MOST_NAME)}: no estimate: {one_line(each['why'])}"


def _wrapped(text: str) -> list[str]:
    indent = "  " + " " * (len(text) - len(text.lstrip()))
    return wrapped(text.lstrip(), WIDTH, indent, indent + "  ", hyphens=False)


def _host(host: Json) -> Iterator[str]:
    yield f"{one_line(host['host'], MOST_NAME)}: {host['seconds']:.1f} s"
    for each in host["interfaces"]:
        yield from _wrapped(_interface(each, host["merged"]))
    if host["sample"] is not None:
        sample = host["sample"]
        yield from _wrapped(
            f"sampled: {sample['packets']:,} packets in {sample['windows']} windows of "
            f"{sample['window_seconds']:.1f} s together, for {sample['cpu_seconds']:.3f} s of a CPU (measurement)"
        )
    for text in (_merged(host["merged"]), _cpu(host["cpu"]), _limits(host["limits"])):
        if text:
            yield from _wrapped(text)
    told: list[Any] = []
    for each, nagle in zip(host["targets"], host["nagle"], strict=True):
        yield from _target(each, host["source"])
        # Those of a smaller MTU are mostly the same.
        ends = [(one["local"], one["remote"]) for one in nagle["sockets"]]
        yield from _nagle({**nagle, "sockets": [] if ends == told else nagle["sockets"]})
        told = ends
    for note in host["notes"]:
        yield from _wrapped(f"note: {one_line(note)}")


def _interface(each: Json, merged: Json | None) -> str:
    speed = f", {print_bits_per_second(each['bits_per_second'])}" if each["bits_per_second"] else ""
    most = f" of {each['maximum_mtu']}" if each["maximum_mtu"] else ""
    rates = " and ".join(_rate(way, each[way]) for way in ("sent", "received"))
    # Drivers without segmentation of their own count an aggregate of many packets as one.
    if merged is not None and any((merged[f"{way}_ratio"] or 1.0) > 1.0 for way in ("sent", "received")):
        rates += ", aggregates counted as its driver does"
    full = each["full_share"]
    share = f"; {full['value']:.1%} of packets are full ({full['kind']})" if full is not None else ""
    name, driver = one_line(each["interface"], MOST_NAME), one_line(each["driver"] or "unknown driver", MOST_NAME)
    return f"{name} ({driver}{speed}): MTU {each['mtu']}{most}, {rates} (reading){share}"


def _rate(way: str, found: Json) -> str:
    return f"{way} {print_bits_per_second(found['bits_per_second'])} in {found['packets_per_second']:,.0f} packets/s"


def _merged(found: Json | None) -> str:
    if found is None:
        return ""
    parts = [
        f"{name} are {found[key]:.1f} packets on the wire"
        for name, key in (("received aggregates", "received_ratio"), ("sent ones", "sent_ratio"))
        if found[key] is not None
    ]
    return f"{', '.join(parts)}, in the mean ({found['kind']})" if parts else ""


def _cpu(found: Json) -> str:
    return (
        f"CPUs: {found['used_share']:.1%} of their time in use, {found['busiest_share']:.1%} of the busiest; softirqs "
        f"are {found['softirq_share_of_used']:.1%} of what is in use ({found['kind']}, of the whole machine)"
    )


def _limits(found: Json) -> str:
    if found["application_share"] is None:
        return ""
    return (
        f"connections, by what they sent: their programs sent nothing for {found['application_share']:.1%} of the "
        f"time, receivers held them up for {found['receiver_share']:.1%}, send buffers for {found['buffer_share']:.1%} "
        f"({found['kind']}, TCP_INFO of {found['throughout']})"
    )


def _target(found: Json, source: str | None = None) -> Iterator[str]:
    """A line for packets, one for gains, and one for the answer."""
    packets, goodput, answer = found["packets"], found["goodput"], ANSWERS[found["answer"]]
    if found["answer"] in (NO_TRAFFIC, ALREADY):
        yield from _wrapped(f"MTU {found['mtu']}: {answer}")
        return
    ratio, then = packets["ratio"], packets["after_per_second"]
    of = f", {SOURCES[source]}" if source else ""
    saved = print_bytes(found["header_bytes_saved_per_second"]["estimate"])
    most = "without a bound" if goodput["at_most"] is None else f"at most +{_percent(goodput['at_most'])}"
    before = packets["before_per_second"]
    if found["answer"] == UNKNOWN:
        yield from _wrapped(
            f"MTU {found['mtu']}: {ratio['least']:.1f} to {ratio['most']:.1f} times fewer packets (bound{of}): "
            f"{before:,.0f} become {then['least']:,.0f} to {then['most']:,.0f} per second"
        )
        yield from _wrapped("  goodput and CPU time without a bound")
        yield from _wrapped(f"  {answer}")
        return
    yield from _wrapped(
        f"MTU {found['mtu']}: {ratio['estimate']:.1f} times fewer packets ({ratio['least']:.1f} to "
        f"{ratio['most']:.1f}; bound{of}): {before:,.0f} become {then['estimate']:,.0f} per second, with "
        f"{saved} per second less of headers"
    )
    yield from _wrapped(
        f"  goodput {most} (bound; by headers alone +{_percent(goodput['frames_at_most'])}), CPU time at most "
        f"-{_percent(found['cpu']['at_most'])} (bound)"
    )
    yield from _wrapped(f"  {answer}")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 10 else f"{100 * share:,.0f} %"


def _nagle(found: Json) -> Iterator[str]:
    sockets = found["sockets"]
    if sockets:
        yield from _wrapped(
            f"MTU {found['mtu']}: {len(sockets)} socket{'' if len(sockets) == 1 else 's'} with Nagle's algorithm on "
            "send messages that are several segments now and one then, which may wait for an acknowledgement:"
        )
    for each in sockets[:MOST_SOCKETS]:
        program = one_line(each["program"] or "unknown program", MOST_NAME)
        yield (
            f"    {program} (process {each['process']}) to {one_line(each['remote'], MOST_NAME)}: {each['messages']} "
            f"of {each['of_messages']} messages sampled"
        )
    if len(sockets) > MOST_SOCKETS:
        yield f"    and {len(sockets) - MOST_SOCKETS} more"
    if found["unread_sockets"]:
        yield from _wrapped(
            f"MTU {found['mtu']}: of {found['unread_sockets']} sockets with such messages it is not known whether "
            "Nagle's algorithm is on (that takes root)"
        )
