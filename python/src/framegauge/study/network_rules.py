"""Rules for a study's network across testbed and factors, checked before anything is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.files.types import HOST, Problem, nearest, one_of
from framegauge.networks import disciplines, topologies
from framegauge.quantities import exact_bits_per_second, exact_bytes
from framegauge.study.testbed import Testbed
from framegauge.study.topology import LEVELLED

__all__ = ["SMALLEST_IPV6_MTU", "network_problems", "overlays"]

FRAME_OVERHEAD_BYTES = 18  # Ethernet header and FCS
SMALLEST_IPV6_MTU = 1280  # RFC 8200
LOSSLESS = ("taildrop", "step", "priority")  # disciplines that drop only what does not fit
MOST_MEMBERS = 250  # hosts and routers that one subnet has addresses for
Where = tuple[str | int, ...]


def network_problems(
    bed: Testbed,
    levels: Mapping[str, Sequence[Any]],
    mtus: Sequence[int],
    sysctls: Mapping[str, str],
    watch: Sequence[str] = (),
) -> Iterator[Problem]:
    """Problems with the network of a study. `levels`: levels of the network's factors that are given, by name; `mtus`:
    all MTUs that hosts may have; `watch`: the ports whose events are kept."""
    if "ecn" in levels and "net.ipv4.tcp_ecn" in sysctls:
        value = sysctls["net.ipv4.tcp_ecn"]
        yield Problem(("sysctls", "net.ipv4.tcp_ecn"), value, "no such key with factors.ecn, which sets it")
    yield from _foreign(bed, levels)
    for level in overlays(levels.get("overlay", ())):
        if level not in bed.capabilities.overlays:
            text = " or ".join(("none", *bed.capabilities.overlays))
            yield Problem(("factors", "overlay"), level, f"{text} on testbed {bed.kind}, which builds no other overlay")
    if not bed.capabilities.has_fabric:
        return
    hosts = bed.host_names
    links = topologies.drawn_links(bed.topology.as_json(), hosts)
    ports = [port for one, other in links for port in ((one, other), (other, one))]
    routers = topologies.routers(bed.topology.as_json())
    largest = min(max(mtus), bed.link.port_mtu) + FRAME_OVERHEAD_BYTES
    yield from _routing(bed, levels.get("routing", ()), topologies.has_choice(links))
    yield from _overlay(bed, levels.get("overlay", ()), links, routers)
    yield from _routers(bed)
    yield from _rates(bed, ports)
    yield from _links(bed, ports, mtus, routers)
    yield from _buffers(bed, levels.get("buffer", ()), largest)
    yield from _lossless(bed, levels)
    yield from _queues(bed, levels, ports)
    yield from _background(bed, links)
    yield from _watch(watch, ports)


def overlays(levels: Sequence[Any]) -> list[str]:
    """The levels of the factor `overlay` that are overlays."""
    return [level for level in levels if level not in (None, "none")]


def _foreign(bed: Testbed, levels: Mapping[str, Sequence[Any]]) -> Iterator[Problem]:
    """Problems with factors that only the rack's switches have."""
    if bed.capabilities.has_fabric:
        return
    names = ["queue", "routing", "skew", "shaping", "buffer"]
    if bed.capabilities.builds_hosts and bed.link.rate is not None:
        names.remove("buffer")  # it is the limit of the shaped port
    for name in names:
        if name in levels:
            yield Problem(
                ("factors", name), _told(levels[name]),
                f"no such factor on testbed {bed.kind}: only the rack's switches have it",
            )  # fmt: skip


def _told(levels: Sequence[Any]) -> str:
    words = {True: "on", False: "off"}
    return ", ".join(words[level] if isinstance(level, bool) else _text(level) for level in levels)


def _text(level: Any) -> str:
    return disciplines.text(level) if isinstance(level, Mapping) else str(level)


def _routing(bed: Testbed, levels: Sequence[str], choice: bool) -> Iterator[Problem]:
    for level in levels:
        if level.startswith("equal-length") and bed.topology.kind not in LEVELLED:
            yield Problem(
                ("factors", "routing"), level, f"topology: {' or '.join(LEVELLED)}: they have a highest level"
            )
        # Equal-length paths may differ from the shortest ones even if there is only one of each.
        if level == "spraying" and not choice:
            yield Problem(
                ("factors", "routing"), level, f"ecmp: topology {bed.topology.kind} has no second path to choose"
            )


def _overlay(
    bed: Testbed, levels: Sequence[str], links: Sequence[tuple[str, str]], routers: Sequence[str]
) -> Iterator[Problem]:
    built = overlays(levels)
    if not built:
        return
    path: Where = ("factors", "overlay")
    if routers:
        yield Problem(path, built[0], f"none with routers ({', '.join(routers)}): the overlay spans one segment")
    several = [host for host in bed.host_names if len(topologies.ends_of(links, host)) > 1]
    if several:
        yield Problem(path, built[0], f"none where hosts have several NICs ({several[0]}): the overlay uses one")


def _routers(bed: Testbed) -> Iterator[Problem]:
    routers = (bed.topology.custom.routers if bed.topology.custom is not None else None) or []
    place: Where = ("testbed", "topology", "custom", "routers")
    members = len(bed.host_names) + len(routers)
    if members > MOST_MEMBERS and not bed.capabilities.is_virtual:
        yield Problem(place, f"{members} with the hosts", f"at most {MOST_MEMBERS}: a subnet has no more addresses")
    for index, router in enumerate(routers):
        path: Where = (*place, index, "mtu")
        if router.mtu is not None and router.mtu > bed.link.port_mtu:
            expected = f"at most link.port_mtu {bed.link.port_mtu}: the switch drops larger frames"
            yield Problem(path, router.mtu, expected)
        if bed.family == 6 and router.mtu is not None and router.mtu < SMALLEST_IPV6_MTU:
            yield Problem(path, router.mtu, f"at least {SMALLEST_IPV6_MTU} with family: 6 (RFC 8200)")


def _rates(bed: Testbed, ports: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    """Problems with links on which hosts send faster than any machine; nothing else fills such a link."""
    most = bed.capabilities.most_bits_per_second
    if most is None:
        return
    rates: list[tuple[Where, int | None]] = [(("testbed", "link", "rate"), bed.link.rate)]
    sending = [port for port in ports if HOST.fullmatch(topologies.node_of(port[0]))]
    for index, link in enumerate(bed.links):
        if any(topologies.fits(link.from_, one) and topologies.fits(link.to, other) for one, other in sending):
            rates.append((("testbed", "links", index, "rate"), link.rate))
    for path, rate in rates:
        if rate is not None and rate > most:
            expected = f"at most {exact_bits_per_second(most)} with kind: {bed.kind}: no machine hands over more"
            yield Problem(path, exact_bits_per_second(rate), f"{expected} (kind: simulator has any rate)")


def _links(
    bed: Testbed, ports: Sequence[tuple[str, str]], mtus: Sequence[int], routers: Sequence[str]
) -> Iterator[Problem]:
    names = {end for port in ports for end in port}
    # A router that takes less keeps what is larger from the links behind it.
    custom_routers = (bed.topology.custom.routers if bed.topology.custom is not None else None) or []
    least = min([*mtus, *(entry.mtu for entry in custom_routers if entry.mtu is not None)])
    for index, entry in enumerate(bed.links):
        path: Where = ("testbed", "links", index)
        for key, pattern in (("from", entry.from_), ("to", entry.to)):
            if not any(topologies.fits(pattern, name) for name in names):
                yield Problem((*path, key), pattern, f"a node (* stands for any characters): {nearest(pattern, names)}")
        matches = [
            (one, other) for one, other in ports
            if topologies.fits(entry.from_, one) and topologies.fits(entry.to, other)
        ]  # fmt: skip
        if not matches:
            one, other = ports[0]
            yield Problem(path, f"{entry.from_} to {entry.to}", f"two nodes with a link, such as {one} to {other}")
        begins = {topologies.node_of(one) for one, _ in matches}
        for key in ("queue", "buffer"):
            if getattr(entry, key) is not None and any(map(HOST.fullmatch, begins)):
                yield Problem(
                    (*path, key), _text(getattr(entry, key)), "only switches in from: a host's NIC has no buffer limit"
                )
        if isinstance(entry.mtu, str):
            if matches and not any(HOST.fullmatch(topologies.node_of(end)) for port in matches for end in port):
                yield Problem((*path, "mtu"), entry.mtu, "a number: no host is at these links")
            continue
        if entry.mtu is not None and entry.mtu < least:
            expected = f"{least} or more, the smallest MTU of hosts{' and routers' if routers else ''}"
            yield Problem((*path, "mtu"), entry.mtu, f"{expected}: larger frames are dropped")
        if entry.mtu is not None and begins and begins <= set(routers):
            expected = f"the mtu of {', '.join(sorted(begins))} set in topology.custom.routers"
            yield Problem((*path, "mtu"), entry.mtu, expected)


def _buffers(bed: Testbed, levels: Sequence[int], largest_bytes: int) -> Iterator[Problem]:
    buffers: list[tuple[Where, int]] = [(("factors", "buffer"), level) for level in levels]
    if not levels:
        buffers.append((("testbed", "link", "buffer"), bed.link.buffer))
    if bed.shared_buffer is not None:
        buffers.append((("testbed", "shared_buffer", "bytes"), bed.shared_buffer.bytes))
    buffers += [
        (("testbed", "links", index, "buffer"), link.buffer)
        for index, link in enumerate(bed.links)
        if link.buffer is not None
    ]
    for path, size in buffers:
        if size < largest_bytes:
            yield Problem(path, size, f"{largest_bytes} bytes or more: one full frame of the largest MTU")


def _lossless(bed: Testbed, levels: Mapping[str, Sequence[Any]]) -> Iterator[Problem]:
    """Problems with a lossless network: only simulated hosts obey pauses, and no port may drop by itself."""
    if bed.shared_buffer is None or not bed.shared_buffer.lossless:
        return
    if not bed.capabilities.is_virtual:
        expected = f"off with kind: {bed.kind}: only hosts of kind: simulator can be paused"
        yield Problem(("testbed", "shared_buffer", "lossless"), "on", expected)
    if "buffer" in levels:
        text = ", ".join(map(exact_bytes, levels["buffer"]))
        yield Problem(("factors", "buffer"), text, "no such factor with shared_buffer.lossless: ports share it all")
    queues: list[tuple[Where, Any]] = [
        (("factors", "queue", "levels", index), level) for index, level in enumerate(levels.get("queue", ()))
    ]
    for index, link in enumerate(bed.links):
        path: Where = ("testbed", "links", index)
        queues += [((*path, "queue"), link.queue)] if link.queue is not None else []
        if link.buffer is not None:
            yield Problem((*path, "buffer"), link.buffer, "no such key with shared_buffer.lossless: ports share it all")
    for path, level in queues:
        discipline = disciplines.as_json(level)
        if discipline["kind"] not in LOSSLESS or "limit_frames" in discipline:
            expected = f"{one_of(LOSSLESS)} without frames, with shared_buffer.lossless: others drop"
            yield Problem(path, _text(level), expected)


def _queues(bed: Testbed, levels: Mapping[str, Sequence[Any]], ports: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    """Problems with thresholds above a port's buffers, and with unknown input ports."""
    usual = list(levels.get("buffer", ())) or [bed.link.buffer]
    queues: list[tuple[Where, Any, Sequence[int]]] = [
        (("factors", "queue", "levels", index), level, usual) for index, level in enumerate(levels.get("queue", ()))
    ]
    for index, link in enumerate(bed.links):
        if link.queue is not None:
            own_buffers = usual if link.buffer is None else [link.buffer]
            queues.append((("testbed", "links", index, "queue"), link.queue, own_buffers))
    port_names = {f"{one}>{other}" for one, other in ports}
    for path, level, buffers in queues:
        discipline = disciplines.as_json(level)
        for buffer in buffers:
            yield from _thresholds(path, discipline, buffer)
        if discipline.get("input_port", next(iter(port_names))) not in port_names:
            expected = f"a port: {nearest(discipline['input_port'], port_names)}"
            yield Problem((*path, discipline["kind"], "input_port"), discipline["input_port"], expected)


def _thresholds(path: Where, discipline: Mapping[str, Any], buffer_bytes: int) -> Iterator[Problem]:
    if discipline.get("threshold_bytes", 0) > buffer_bytes:
        shown = exact_bytes(discipline["threshold_bytes"])
        yield Problem((*path, "step", "threshold"), shown, f"at most the buffer of {exact_bytes(buffer_bytes)}")


def _background(bed: Testbed, links: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    if not bed.background:
        return
    most = bed.link.port_mtu + FRAME_OVERHEAD_BYTES
    hosts, ends = set(bed.host_names), dict[str, str]()
    for end in (end for link in links for end in link):
        if (host := topologies.node_of(end)) in hosts:
            ends.setdefault(host, end)  # the name of a host stands for its first NIC
            ends[end] = end
    parts = topologies.segments(links)
    for index, load in enumerate(bed.background):
        path: Where = ("testbed", "background", index)
        unknown = [(key, name) for key, name in (("from", load.from_), ("to", load.to)) if name not in ends]
        for key, name in unknown:
            yield Problem((*path, key), name, f"a host: {nearest(name, ends)}")
        if topologies.node_of(load.from_) == topologies.node_of(load.to):
            yield Problem(path, f"{load.from_} to {load.to}", "two hosts")
        if not unknown and not any({ends[load.from_], ends[load.to]} <= part for part in parts):
            expected = "two hosts on one segment: routers do not forward background load"
            yield Problem(path, f"{load.from_} to {load.to}", expected)
        if load.frame > most:
            yield Problem((*path, "frame"), load.frame, f"at most {most} bytes: the switch drops larger frames")


def _watch(names: Sequence[str], ports: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    port_names, counts, by_node = [], Counter[tuple[str, str]](), dict[str, list[str]]()
    for one, other in ports:
        counts[one, other] += 1
        # The second of two links between the same ends is called switch>h1#2.
        port_names.append(f"{one}>{other}" + (f"#{counts[one, other]}" if counts[one, other] > 1 else ""))
        by_node.setdefault(f"{topologies.node_of(one)}>{topologies.node_of(other)}", []).append(port_names[-1])
    for index, name in enumerate(names):
        if name not in port_names:
            expected = one_of(by_node[name]) if name in by_node else nearest(name, port_names)
            yield Problem(("meters", "watch", index), name, f"a port: {expected}")
