"""Who else is in the subnets of a change: stations that none of its hosts is, and what they may not take in. Pure.

A host that is raised sends large packets to everybody in its subnet: TCP asks the other end how much it takes (its
MSS), but datagrams and their fragments do not. So a neighbour that is not of the roll-out must be known to take the new
MTU, or hosts must keep what they send to it small, by a route of its own:

    ip route add 10.0.0.9/32 dev eth1 mtu lock 1500

Such a route is left as it is by a roll-out. Who is there is read of ARP and ND tables, forwarding tables of bridges,
and LLDP; none of them is sure to have everybody.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framegauge.rollout.model import Asked, Finding, Json
from framegauge.rollout.preflight.case import Case

__all__ = ["KIND", "Neighbour", "findings", "keeps_small", "strangers"]

KIND = "neighbour"
MOST_SHOWN = 8
GONE = {"FAILED", "INCOMPLETE", "NOARP"}
FRAME_BYTES = 18  # of Ethernet around a packet: header and FCS (IEEE 802.3); LLDP tells frames, tags apart


@dataclass
class Neighbour:
    """A station in a subnet of the change: its addresses, and who has seen it how (ip-neighbour(8))."""

    mac: str
    addresses: set[str] = field(default_factory=set)
    seen: dict[str, str] = field(default_factory=dict)  # host/interface: state
    is_router: bool = False

    @property
    def name(self) -> str:
        """For people."""
        return f"{', '.join(sorted(self.addresses, key=lambda address: (':' in address, address)))} ({self.mac})"


def findings(facts: Mapping[str, Json], asked: Asked) -> Iterator[Finding]:
    """What neighbours may not take, what is behind bridges, and what switches say of their ports."""
    cases = [Case(name, asked.interfaces[name], asked, facts[name]) for name in asked.hosts if name in facts]
    cases = [case for case in cases if case.interface in case.links]
    raised, unlisted = [case for case in cases if case.is_raised], strangers(cases)
    open_ones = [(neighbour, hosts) for neighbour in unlisted if (hosts := _unscoped(neighbour, raised))]
    refused = [pair for pair in open_ones if not _is_spared(pair[0], asked)]
    for neighbour, hosts in refused[:MOST_SHOWN]:
        yield _finding(neighbour, hosts, "refused")
    if len(refused) > MOST_SHOWN:
        rest = [neighbour.name for neighbour, _ in refused[MOST_SHOWN:]]
        rest_text = f"{len(rest)} more neighbours that are none of these hosts ({', '.join(rest)})"
        yield refused[MOST_SHOWN][1][0].finding(KIND, "refused", rest_text, "hosts of the file", "as for the others")
    for neighbour, hosts in open_ones:
        if _is_spared(neighbour, asked):
            yield _finding(neighbour, hosts, "warning")
    known_macs = {neighbour.mac for neighbour in unlisted} | _own(cases)
    for case in raised:
        yield from _behind_ports(case, known_macs)
        yield from _switch(case)


def strangers(cases: Sequence[Case]) -> list[Neighbour]:
    """The neighbours of the interfaces that are raised which are none of the hosts. `cases` are those of all hosts: one
    that has the new MTU already is a host of the roll-out, and no stranger to the others."""
    macs, neighbours = _own(cases), dict[str, Neighbour]()
    own_ips = {
        record["address"]
        for case in cases
        for interface in case.facts["check"]["interfaces"]
        for record in interface["addresses"]
    }
    for case in (candidate for candidate in cases if candidate.is_raised):
        gateways = {str(route.get("gateway")) for route in _entries(case, "routes", "routes6") if route.get("gateway")}
        for entry in _entries(case, "neighbours"):
            mac, address = str(entry.get("lladdr", "")).lower(), str(entry.get("dst", ""))
            states = [str(state) for state in entry.get("state") or ()]
            if entry.get("dev") != case.interface or not mac or mac in macs or address in own_ips or GONE & set(states):
                continue
            if not case.is_near(address):
                continue
            neighbour = neighbours.setdefault(mac, Neighbour(mac))
            neighbour.addresses.add(address)
            neighbour.seen[f"{case.host}/{case.interface}"] = ", ".join(states) or "?"
            neighbour.is_router |= address in gateways or entry.get("router") is not None
    return [neighbours[mac] for mac in sorted(neighbours)]


def _own(cases: Sequence[Case]) -> set[str]:
    """The hardware addresses of all hosts."""
    links = [case.links.get(name) for case in cases for name in case.links.names()]
    return {link.address.lower() for link in links if link is not None and link.address}


def _is_spared(neighbour: Neighbour, request: Asked) -> bool:
    """A router passes on what others send; with `subnets` only what is sent to itself is large, which is little."""
    return neighbour.is_router and request.scope == "subnets"


def _unscoped(neighbour: Neighbour, cases: Sequence[Case]) -> list[Case]:
    """The hosts that would send large packets to it: those of its subnet without a route to it that keeps them small,
    which do not know that it takes them."""
    return [
        case
        for case in cases
        if any(
            case.is_near(address) and not keeps_small(case, address) and not _takes(case, address)
            for address in neighbour.addresses
        )
    ]


def keeps_small(case: Case, address: str) -> bool:
    """Whether a route to that address alone has an MTU that stays: less than the interface has now, or as much and
    locked (`ip -j` does not show the lock)."""
    place = ipaddress.ip_address(address)
    for route in _entries(case, "routes" if place.version == 4 else "routes6"):
        if route.get("dst") != address or route.get("dev") != case.interface:
            continue
        mtus = [metric.get("mtu") for metric in route.get("metrics") or () if isinstance(metric, dict)]
        mtu = next((size for size in mtus if isinstance(size, int)), None)
        is_locked = [address, case.interface] in (case.facts.get("locked") or [])
        if mtu is not None and (mtu < case.before or (is_locked and mtu == case.before)):
            return True
    return False


def _takes(case: Case, address: str) -> bool:
    """Whether packets of the new MTU were answered by it."""
    size = (case.facts.get("answered") or {}).get(address)
    return isinstance(size, int) and size >= case.target


def _finding(neighbour: Neighbour, hosts: Sequence[Case], severity: Any) -> Finding:
    first, target = hosts[0], hosts[0].target
    sizes = [
        size for case in hosts for address in neighbour.addresses if (size := _answered(case, address)) is not None
    ]
    answer_text = f"answers packets of {max(sizes)}, more was not asked" if sizes else "its MTU is not known"
    who = "a router in its subnet" if neighbour.is_router else "a neighbour in its subnet"
    sightings = "; ".join(f"{where}: {state}" for where, state in sorted(neighbour.seen.items())[:MOST_SHOWN])
    stranger = f"{who} that is none of these hosts: {neighbour.name}, {answer_text} ({sightings})"
    commands = [
        f"ip route add {to}/{ipaddress.ip_address(to).max_prefixlen} dev {first.interface} mtu lock {first.before}"
        for to in sorted(neighbour.addresses)
        if not ipaddress.ip_address(to).is_link_local
    ]
    on = ", ".join(case.host for case in hosts[:MOST_SHOWN]) + (" and others" if len(hosts) > MOST_SHOWN else "")
    remedy = "name it in the file; or keep what is sent to it small"
    remedy += f", on {on}: {'; '.join(commands)} (undo: ip route del)" if commands else ""
    remedy += f"; or force {KIND} if it takes {target}: TCP asks it for its MSS, datagrams and fragments do not"
    return first.finding(KIND, severity, stranger, f"a host of the file, or one that takes packets of {target}", remedy)


def _answered(case: Case, address: str) -> int | None:
    size = (case.facts.get("answered") or {}).get(address)
    return size if isinstance(size, int) else None


def _behind_ports(case: Case, known_macs: set[str]) -> Iterator[Finding]:
    """What a bridge of this host has learned behind ports that do not lead out: guests and containers."""
    bridge = case.interface if case.link.kind == "bridge" else case.link.master
    outward = {link.name for link in case.links.outward(bridge or "")} | {case.interface}
    macs_by_port: dict[str, set[str]] = {}
    for entry in _entries(case, "fdb"):
        port, mac = str(entry.get("ifname", "")), str(entry.get("mac", "")).lower()
        is_learned = entry.get("master") == bridge and entry.get("state") != "permanent"
        if bridge and is_learned and port not in outward and mac not in known_macs:
            macs_by_port.setdefault(port, set()).add(mac)
    for port, macs in sorted(macs_by_port.items()):
        link = case.links.get(port)
        if link is not None and link.mtu < case.target:
            continue  # of a port that is too small another finding tells
        examples = ", ".join(sorted(macs)[:MOST_SHOWN])
        stations = f"{len(macs)} stations behind the port {port} of {bridge} that are none of these hosts ({examples})"
        remedy = f"raise them first, or keep what is sent to them at {case.before} by routes: nothing tells their MTU"
        yield case.finding(KIND, "warning", stations, f"stations that take packets of {case.target}", remedy)


def _switch(case: Case) -> Iterator[Finding]:
    """What the switch says of its port (LLDP, the maximum frame size of IEEE 802.3)."""
    for entry in _lldp(case.facts.get("lldp")):
        size = entry["frame_bytes"]
        if entry["interface"] == case.interface and size is not None and size < case.target + FRAME_BYTES:
            text = (
                f"its switch {entry['switch']}, port {entry['port']}, which says that it takes frames of {size} (LLDP)"
            )
            remedy = "raise the port first; some switches say so whatever they take: packets will prove it"
            expected = f"frames of {case.target + FRAME_BYTES} or more"
            yield case.finding("switch", "warning", text, expected, remedy)


def _lldp(document: Any) -> Iterator[Json]:
    """The neighbours in what `lldpcli -f json0 show neighbors details` prints; nothing for anything else."""
    for one in _list(document, "lldp"):
        for entry in _list(one, "interface"):
            [chassis], [port] = (_list(entry, key)[:1] or [{}] for key in ("chassis", "port"))
            size = _text(port, "mfs")
            yield {
                "interface": entry.get("name"), "switch": _text(chassis, "name") or _text(chassis, "id") or "?",
                "port": _text(port, "id") or _text(port, "descr") or "?",
                "frame_bytes": int(size) if size is not None and size.isdigit() and len(size) < 8 else None,
            }  # fmt: skip


def _list(node: Any, key: str) -> list[Json]:
    values = node.get(key) if isinstance(node, dict) else None
    return [node for node in values if isinstance(node, dict)] if isinstance(values, list) else []


def _text(node: Json, key: str) -> str | None:
    values = [str(inner["value"]) for inner in _list(node, key) if "value" in inner]
    return values[0] if values else None


def _entries(case: Case, *keys: str) -> list[Json]:
    return [entry for key in keys for entry in case.facts.get(key) or () if isinstance(entry, dict)]
