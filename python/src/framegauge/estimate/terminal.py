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
    UNKNOWN: "cannot tell: a part of the load cannot be read (see the notes)",
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
        for entry in document["total"]:
            yield from _target(entry)
    for entry in document["lost"]:
        yield f"{one_line(entry['host'], MOST_NAME)}: no estimate: {one_line(entry['why'])}"


def _wrapped(text: str) -> list[str]:
    indent = "  " + " " * (len(text) - len(text.lstrip()))
    return wrapped(text.lstrip(), WIDTH, indent, indent + "  ", hyphens=False)


def _host(host: Json) -> Iterator[str]:
    yield f"{one_line(host['host'], MOST_NAME)}: {host['seconds']:.1f} s"
    for entry in host["interfaces"]:
        yield from _wrapped(_interface(entry, host["merged"]))
    if host["sample"] is not None:
        sample = host["sample"]
        yield from _wrapped(
            f"sampled: {sample['packets']:,} packets in {sample['windows']} windows of "
            f"{sample['window_seconds']:.1f} s together, for {sample['cpu_seconds']:.3f} s of a CPU (measurement)"
        )
    for text in (_merged(host["merged"]), _cpu(host["cpu"]), _limits(host["limits"])):
        if text:
            yield from _wrapped(text)
    shown: list[Any] = []
    for entry, nagle in zip(host["targets"], host["nagle"], strict=True):
        yield from _target(entry, host["source"])
        # Those of a smaller MTU are mostly the same.
        ends = [(sock["local"], sock["remote"]) for sock in nagle["sockets"]]
        yield from _nagle({**nagle, "sockets": [] if ends == shown else nagle["sockets"]})
        shown = ends
    for note in host["notes"]:
        yield from _wrapped(f"note: {one_line(note)}")


def _interface(interface: Json, merged: Json | None) -> str:
    speed = f", {print_bits_per_second(interface['bits_per_second'])}" if interface["bits_per_second"] else ""
    most = f" of {interface['maximum_mtu']}" if interface["maximum_mtu"] else ""
    rates = " and ".join(_rate(way, interface[way]) for way in ("sent", "received"))
    # Drivers without segmentation of their own count an aggregate of many packets as one.
    if merged is not None and any((merged[f"{way}_ratio"] or 1.0) > 1.0 for way in ("sent", "received")):
        rates += ", aggregates counted as its driver does"
    full = interface["full_share"]
    share = f"; {full['value']:.1%} of packets are full ({full['kind']})" if full is not None else ""
    name, driver = (
        one_line(interface["interface"], MOST_NAME),
        one_line(interface["driver"] or "unknown driver", MOST_NAME),
    )
    return f"{name} ({driver}{speed}): MTU {interface['mtu']}{most}, {rates} (reading){share}"


def _rate(way: str, counts: Json) -> str:
    return f"{way} {print_bits_per_second(counts['bits_per_second'])} in {counts['packets_per_second']:,.0f} packets/s"


def _merged(merged: Json | None) -> str:
    if merged is None:
        return ""
    parts = [
        f"{name} are {merged[key]:.1f} packets on the wire"
        for name, key in (("received aggregates", "received_ratio"), ("sent ones", "sent_ratio"))
        if merged[key] is not None
    ]
    return f"{', '.join(parts)}, in the mean ({merged['kind']})" if parts else ""


def _cpu(usage: Json) -> str:
    return (
        f"CPUs: {usage['used_share']:.1%} of their time in use, {usage['busiest_share']:.1%} of the busiest; softirqs "
        f"are {usage['softirq_share_of_used']:.1%} of what is in use ({usage['kind']}, of the whole machine)"
    )


def _limits(limit: Json) -> str:
    if limit["application_share"] is None:
        return ""
    return (
        f"connections, by what they sent: their programs sent nothing for {limit['application_share']:.1%} of the "
        f"time, receivers held them up for {limit['receiver_share']:.1%}, send buffers for {limit['buffer_share']:.1%} "
        f"({limit['kind']}, TCP_INFO of {limit['throughout']})"
    )


def _target(figures: Json, source: str | None = None) -> Iterator[str]:
    """A line for packets, one for gains, and one for the answer."""
    packets, goodput, answer = figures["packets"], figures["goodput"], ANSWERS[figures["answer"]]
    if figures["answer"] in (NO_TRAFFIC, ALREADY):
        yield from _wrapped(f"MTU {figures['mtu']}: {answer}")
        return
    ratio, then = packets["ratio"], packets["after_per_second"]
    of = f", {SOURCES[source]}" if source else ""
    saved = print_bytes(figures["header_bytes_saved_per_second"]["estimate"])
    most = "without a bound" if goodput["at_most"] is None else f"at most +{_percent(goodput['at_most'])}"
    before = packets["before_per_second"]
    if figures["answer"] == UNKNOWN:
        yield from _wrapped(
            f"MTU {figures['mtu']}: {ratio['least']:.1f} to {ratio['most']:.1f} times fewer packets (bound{of}): "
            f"{before:,.0f} become {then['least']:,.0f} to {then['most']:,.0f} per second"
        )
        yield from _wrapped("  goodput and CPU time without a bound")
        yield from _wrapped(f"  {answer}")
        return
    yield from _wrapped(
        f"MTU {figures['mtu']}: {ratio['estimate']:.1f} times fewer packets ({ratio['least']:.1f} to "
        f"{ratio['most']:.1f}; bound{of}): {before:,.0f} become {then['estimate']:,.0f} per second, with "
        f"{saved} per second less of headers"
    )
    yield from _wrapped(
        f"  goodput {most} (bound; by headers alone +{_percent(goodput['frames_at_most'])}), CPU time at most "
        f"-{_percent(figures['cpu']['at_most'])} (bound)"
    )
    yield from _wrapped(f"  {answer}")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 10 else f"{100 * share:,.0f} %"


def _nagle(nagle: Json) -> Iterator[str]:
    sockets = nagle["sockets"]
    if sockets:
        yield from _wrapped(
            f"MTU {nagle['mtu']}: {len(sockets)} socket{'' if len(sockets) == 1 else 's'} with Nagle's algorithm on "
            "send messages that are several segments now and one then, which may wait for an acknowledgement:"
        )
    for sock in sockets[:MOST_SOCKETS]:
        program = one_line(sock["program"] or "unknown program", MOST_NAME)
        yield (
            f"    {program} (process {sock['process']}) to {one_line(sock['remote'], MOST_NAME)}: {sock['messages']} "
            f"of {sock['of_messages']} messages sampled"
        )
    if len(sockets) > MOST_SOCKETS:
        yield f"    and {len(sockets) - MOST_SOCKETS} more"
    if nagle["unread_sockets"]:
        yield from _wrapped(
            f"MTU {nagle['mtu']}: of {nagle['unread_sockets']} sockets with such messages it is not known whether "
            "Nagle's algorithm is on (that takes root)"
        )
