"""What a study cannot ask of its network: rules across testbed and factors, told before anything is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge import disciplines, topologies
from framegauge.quantities import exact_bytes
from framegauge.study_network import LEVELLED
from framegauge.study_testbed import Testbed
from framegauge.study_types import HOST, Problem, nearest

__all__ = ["network_problems"]

FRAME_OVERHEAD_BYTES = 18  # Ethernet header and FCS
Where = tuple[str | int, ...]


def network_problems(
    bed: Testbed, levels: Mapping[str, Sequence[Any]], mtus: Sequence[int], sysctls: Mapping[str, str]
) -> Iterator[Problem]:
    """`levels`: of the network's factors, by name, those that are given; `mtus`: every one that a host may have."""
    if "ecn" in levels and "net.ipv4.tcp_ecn" in sysctls:
        found = sysctls["net.ipv4.tcp_ecn"]
        yield Problem(("sysctls", "net.ipv4.tcp_ecn"), found, "no such key beside factors.ecn, which sets it")
    yield from _foreign(bed, levels)
    if "vxlan" in levels.get("overlay", ()) and bed.kind not in ("rack", "veth"):
        yield Problem(("factors", "overlay"), "vxlan", f"none on testbed {bed.kind}: its hosts are not ours to join")
    if bed.kind not in ("rack", "fake"):
        return
    hosts = bed.host_names
    drawn = topologies.drawn_links(bed.topology.as_json(), hosts)
    ports = [way for one, other in drawn for way in ((one, other), (other, one))]
    largest = min(max(mtus), bed.link.port_mtu) + FRAME_OVERHEAD_BYTES
    yield from _routing(bed, levels.get("routing", ()), topologies.has_choice(drawn))
    yield from _links(bed, ports, mtus)
    yield from _buffers(bed, levels.get("buffer", ()), largest)
    yield from _queues(bed, levels, ports)
    yield from _background(bed, hosts)


def _foreign(bed: Testbed, levels: Mapping[str, Sequence[Any]]) -> Iterator[Problem]:
    """What only our own switches have."""
    if bed.kind in ("rack", "fake"):
        return
    names = ["queue", "routing", "skew", "shaping", "buffer"]
    if bed.kind == "veth" and bed.link.rate is not None:
        names.remove("buffer")  # it is the limit of the shaped port
    for name in names:
        if name in levels:
            yield Problem(
                ("factors", name), _told(levels[name]), f"no such factor on testbed {bed.kind}: its switch is not ours"
            )


def _told(levels: Sequence[Any]) -> str:
    words = {True: "on", False: "off"}
    return ", ".join(words[each] if isinstance(each, bool) else _text(each) for each in levels)


def _text(level: Any) -> str:
    return disciplines.text(level) if isinstance(level, Mapping) else str(level)


def _routing(bed: Testbed, levels: Sequence[str], choice: bool) -> Iterator[Problem]:
    for level in levels:
        if level.startswith("equal-length") and bed.topology.kind not in LEVELLED:
            yield Problem(
                ("factors", "routing"), level, f"topology: {' or '.join(LEVELLED)}: they have a highest level"
            )
        # Equal-length paths may be others than the shortest, even where each is alone.
        if level == "spraying" and not choice:
            yield Problem(
                ("factors", "routing"), level, f"ecmp: topology {bed.topology.kind} has no second path to choose"
            )


def _links(bed: Testbed, ports: Sequence[tuple[str, str]], mtus: Sequence[int]) -> Iterator[Problem]:
    names = {node for port in ports for node in port}
    for index, each in enumerate(bed.links):
        where: Where = ("testbed", "links", index)
        for key, pattern in (("from", each.from_), ("to", each.to)):
            if not any(topologies.matches(pattern, name) for name in names):
                yield Problem((*where, key), pattern, f"a node, * for any: {nearest(pattern, names)}")
        meant = [
            (one, other) for one, other in ports
            if topologies.matches(each.from_, one) and topologies.matches(each.to, other)
        ]  # fmt: skip
        if not meant:
            one, other = ports[0]
            yield Problem(where, f"{each.from_} to {each.to}", f"two nodes with a link, such as {one} to {other}")
        for key in ("queue", "buffer"):
            if getattr(each, key) is not None and any(HOST.fullmatch(one) for one, _ in meant):
                yield Problem(
                    (*where, key), _text(getattr(each, key)), "switches alone in from: a host's NIC has no limit"
                )
        if each.mtu is not None and each.mtu < min(mtus):
            yield Problem(
                (*where, "mtu"), each.mtu, f"{min(mtus)} or more, the hosts' smallest MTU: larger frames die there"
            )


def _buffers(bed: Testbed, levels: Sequence[int], largest_bytes: int) -> Iterator[Problem]:
    found: list[tuple[Where, int]] = [(("factors", "buffer"), level) for level in levels]
    if not levels:
        found.append((("testbed", "link", "buffer"), bed.link.buffer))
    if bed.shared_buffer is not None:
        found.append((("testbed", "shared_buffer", "bytes"), bed.shared_buffer.bytes))
    found += [
        (("testbed", "links", index, "buffer"), each.buffer)
        for index, each in enumerate(bed.links)
        if each.buffer is not None
    ]
    for where, size in found:
        if size < largest_bytes:
            yield Problem(where, size, f"{largest_bytes} bytes or more: one full frame of the largest MTU")


def _queues(bed: Testbed, levels: Mapping[str, Sequence[Any]], ports: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    """Thresholds within the buffers that the port may have, and input ports that are there."""
    usual = list(levels.get("buffer", ())) or [bed.link.buffer]
    found: list[tuple[Where, Any, Sequence[int]]] = [
        (("factors", "queue", "levels", index), level, usual) for index, level in enumerate(levels.get("queue", ()))
    ]
    for index, each in enumerate(bed.links):
        if each.queue is not None:
            own = usual if each.buffer is None else [each.buffer]
            found.append((("testbed", "links", index, "queue"), each.queue, own))
    named = {f"{one}>{other}" for one, other in ports}
    for where, level, buffers in found:
        given = disciplines.as_json(level)
        for buffer in buffers:
            yield from _thresholds(where, given, buffer)
        if given.get("input_port", next(iter(named))) not in named:
            expected = f"a port: {nearest(given['input_port'], named)}"
            yield Problem((*where, given["kind"], "input_port"), given["input_port"], expected)


def _thresholds(where: Where, given: Mapping[str, Any], buffer_bytes: int) -> Iterator[Problem]:
    if given.get("threshold_bytes", 0) > buffer_bytes:
        shown = exact_bytes(given["threshold_bytes"])
        yield Problem((*where, "step", "threshold"), shown, f"at most the buffer of {exact_bytes(buffer_bytes)}")


def _background(bed: Testbed, hosts: Sequence[str]) -> Iterator[Problem]:
    most = bed.link.port_mtu + FRAME_OVERHEAD_BYTES
    for index, each in enumerate(bed.background):
        where: Where = ("testbed", "background", index)
        for key, name in (("from", each.from_), ("to", each.to)):
            if name not in hosts:
                yield Problem((*where, key), name, f"a host: {nearest(name, hosts)}")
        if each.from_ == each.to:
            yield Problem(where, f"{each.from_} to {each.to}", "two hosts")
        if each.frame > most:
            yield Problem((*where, "frame"), each.frame, f"at most {most} bytes: larger frames die at the switch")
