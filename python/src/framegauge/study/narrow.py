"""Links and routers whose MTU lies below a level of the study, and what becomes of the packets that do not fit.

They may well be what the study is about, so they are no problem: they are said before anything runs. Only what TCP
sends counts: between two hosts no packet is larger than the smaller of their MTUs. What a router has not let through
does not reach the links behind it.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from framegauge.networks import topologies
from framegauge.study.model import Study, host_mtus, level_text, route_mtu, storage_mtu
from framegauge.study.network import link_settings

__all__ = ["Narrow", "lines", "narrow"]

# What happens to a packet that does not fit: a switch drops it (giant) and tells nobody; a router drops it and tells
# its sender (RFC 1191, RFC 8201), unless that error is filtered.
Fate = Literal["dropped", "too big", "filtered"]

_PROBING = "net.ipv4.tcp_mtu_probing"
_SHOWN = 2  # links of one warning that are named

Group = tuple[tuple[int, int], int]  # the subnet and the MTU of ends of hosts


@dataclass(frozen=True)
class Narrow:
    """Links of one MTU (bytes) that is below a level; of a router they are those by which it sends on."""

    level: Any
    links: Sequence[str]
    router: str | None
    mtu: int
    packet_bytes: int  # the largest that comes there
    fate: Fate
    probed: bool = False  # some arm has TCP look for the path MTU itself
    fragments: bool = False  # datagrams may be sent as fragments

    def as_json(self) -> dict[str, Any]:
        """As `framegauge plan --json` prints it."""
        return {
            "level": self.level,
            "links": list(self.links),
            "router": self.router,
            "mtu": self.mtu,
            "packet_bytes": self.packet_bytes,
            "fate": self.fate.replace(" ", "_"),
            "text": self.text(),
        }

    def text(self) -> str:
        """One line, with what happens."""
        more = len(self.links) - _SHOWN
        link_names = ", ".join(self.links[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        link = "link" if len(self.links) == 1 else "links"
        place = f"router {self.router} ({link} {link_names})" if self.router is not None else f"{link} {link_names}"
        large = f"packets of {self.packet_bytes} bytes that come there"
        sentence = f"MTU {level_text(self.level)} is above the {self.mtu} of {place}: {large}"
        if self.fate == "too big":
            then = "; datagrams are sent as fragments" if self.fragments else ""
            return f'{sentence} are dropped, and their sender is told ("too big") and sends smaller ones{then}'
        why = "giant" if self.fate == "dropped" else "its ICMP errors are filtered"
        end = "only mtu_probing gets transfers" if self.probed else "transfers of full packets do not get"
        return f"{sentence} are dropped ({why}) and nobody is told, so {end} through it"


@dataclass
class _Largest:
    """The largest packets, in bytes: by segment, by end of a host, and by router, of those that come to it."""

    of_segments: Counter[int] = field(default_factory=Counter)
    of_ends: Counter[str] = field(default_factory=Counter)
    of_routers: Counter[str] = field(default_factory=Counter)


def narrow(study: Study) -> list[Narrow]:
    """Every warning, level by level."""
    bed = study.testbed
    if not bed.capabilities.has_fabric:
        return []
    return [warning for level in study.factors.mtu.levels for warning in _of_level(study, level)]


def lines(study: Study) -> list[str]:
    """The warnings as lines of text."""
    return [f"warning: {warning.text()}" for warning in narrow(study)]


def _of_level(study: Study, level: Any) -> Iterator[Narrow]:
    bed, names = study.testbed, study.testbed.host_names
    mtus, second, held = host_mtus(level, names), storage_mtu(level, names), route_mtu(level, names)
    all_links = topologies.drawn_links(bed.topology.as_json(), names)
    ports = [port for one, other in all_links for port in ((one, other), (other, one))]
    routers = {
        item["name"]: (item.get("mtu", bed.link.port_mtu), item.get("icmp", "on"))
        for item in bed.topology.as_json().get("routers", ())
    }
    settings = [item for item in link_settings(bed.links, ports, mtus, second) if "mtu" in item]
    if not settings and not routers and max(mtus.values()) <= bed.link.port_mtu:
        return
    ends = {end: mtus[node] for link in all_links for end in link if (node := topologies.node_of(end)) in mtus}
    if second is not None:
        ends |= dict.fromkeys((end for end in ends if end.endswith(".2")), second)
    if held is not None:
        ends = {end: min(mtu, held) for end, mtu in ends.items()}
    largest, segment_of = _largest(all_links, ends, routers)
    narrow_ports: dict[tuple[str | None, int, int, Fate], list[str]] = defaultdict(list)
    for one, other in ports:
        router = node if (node := topologies.node_of(one)) in routers else None
        if router is not None:
            (mtu, icmp), most = routers[router], largest.of_routers[router]
            fate: Fate = "too big" if icmp == "on" else "filtered"
        else:
            mtu, fate = topologies.setting(settings, one, other).get("mtu", bed.link.port_mtu), "dropped"
            end = next((end for end in (one, other) if end in ends), None)
            most = largest.of_segments[segment_of[one]] if end is None else largest.of_ends[end]
        if most > mtu:
            narrow_ports[router, mtu, most, fate].append(f"{one}>{other}")
    probed, fragments = _probed(study), any(item.datagrams is not None for item in study.workloads)
    for (router, mtu, most, fate), links in narrow_ports.items():
        yield Narrow(level, links, router, mtu, most, fate, probed, fragments)


def _probed(study: Study) -> bool:
    return any(study.factors.levels("mtu_probing")) or study.sysctls.get(_PROBING, "0") != "0"


def _largest(
    links: Sequence[topologies.Link], ends: Mapping[str, int], routers: Mapping[str, tuple[int, str]]
) -> tuple[_Largest, dict[str, int]]:
    """The largest packets between hosts whose ends have these MTUs; and the segment of every end and switch."""
    segments = topologies.segments(links)
    segment_of = {end: number for number, segment in enumerate(segments) for end in segment}
    sides = {name: {segment_of[end] for end in topologies.ends_of(links, name)} for name in routers}
    ways = topologies.Ways(links, list(routers))
    groups: dict[Group, list[str]] = defaultdict(list)
    for end, mtu in ends.items():
        groups[ways.subnet(end), mtu].append(end)
    largest, of_groups = _Largest(), Counter[Group]()
    for one, other in itertools.product(groups, repeat=2):
        if one == other and len(groups[one]) == 1:
            continue
        way = ways.routers(groups[one][0], groups[other][0])
        if way is None:
            continue
        size, here = min(one[1], other[1]), {segment_of[groups[one][0]]}
        of_groups[one] = max(of_groups[one], size)
        for place, name in enumerate(way, start=1):
            _raise(largest.of_segments, here, size)
            _raise(largest.of_routers, [name], size)
            size = min(size, routers[name][0])
            here = sides[name] & sides[way[place]] if place < len(way) else {segment_of[groups[other][0]]}
        _raise(largest.of_segments, here, size)
        of_groups[other] = max(of_groups[other], size)
    for group, members in groups.items():
        _raise(largest.of_ends, members, of_groups[group])
    return largest, segment_of


def _raise(largest: Counter[Any], keys: Iterable[object], size: int) -> None:
    for key in keys:
        largest[key] = max(largest[key], size)
