"""The commands of `ip`, `bridge` and `nft` that build a lab's plan: text only, nothing runs here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from framegauge.labs.model import Node, Promise, families_of
from framegauge.labs.plan import Hop, Interface, Plan

__all__ = ["Recipe", "Reminder", "links", "recipe", "reminders"]

BRIDGE = "br0"
VXLAN_PORT = 4789
VXLAN_NUMBER = 78
EVERYBODY_ELSE = "00:00:00:00:00:00"
PARTS = 1_000_000  # the resolution of a loss in nft
# A kernel forgets a path MTU after ten minutes, which is too soon for work by hand.
REMEMBERED_SECONDS = 7 * 24 * 3600
ICMP = {
    ("too_big", 4): "icmp type destination-unreachable icmp code frag-needed",
    ("too_big", 6): "icmpv6 type packet-too-big",
    ("expired", 4): "icmp type time-exceeded",
    ("expired", 6): "icmpv6 type time-exceeded",
}


@dataclass(frozen=True)
class Recipe:
    """What turns a namespace with its cables into a node: settings below /proc/sys/net, then batches for the programs.

    A setting whose name ends in ? is skipped if the kernel does not have it.
    """

    settings: Mapping[str, str]
    ip: list[str]
    bridge: list[str]
    nft: list[str]


@dataclass(frozen=True)
class Reminder:
    """What makes a host's kernel remember a path MTU: for a while, the routers report it.

    `detours` are pairs of a router and its temporary route to the address.
    """

    host: str
    address: str
    family: int
    mtu: int
    detours: list[tuple[str, str]]


def links(plan: Plan, threads: Mapping[str, int]) -> list[str]:
    """The lines for `ip -batch`, in any namespace, that create every cable with its ends in the threads' namespaces."""
    ends: dict[int, list[tuple[str, Interface]]] = {}
    for node, interfaces in plan.interfaces.items():
        for each in interfaces:
            if each.link is not None:
                ends.setdefault(each.link, []).append((node, each))

    def end(node: str, interface: Interface) -> str:
        return f"{interface.name} index {interface.index} mtu {interface.mtu} netns {threads[node]}"

    return [
        f"link add name {end(*first)} type veth peer name {end(*second)}" for _, (first, second) in sorted(ends.items())
    ]


def recipe(plan: Plan, name: str) -> Recipe:
    """The recipe of one node."""
    node, interfaces = plan.network.nodes[name], plan.interfaces[name]
    filters = [*_ingress(plan, name), *_forwarding(node)]
    if node.kind == "switch":
        return Recipe(_switch_settings(), [*_switch(interfaces)], [], filters)
    ip = list(_addresses(interfaces))
    bridge: list[str] = []
    for each in interfaces:
        if each.overlay is not None:
            more, peers = _vxlan(plan, name, each)
            ip, bridge = [*ip, *more], [*bridge, *peers]
    for prefix, hops in plan.routes(name):
        ip.append(f"route add {prefix} {_via(hops)}")
    for promise in node.routes:
        for address, target in _targets(plan, name, promise):
            ip.append(f"route add {address} mtu {promise.mtu} {target}")
    return Recipe(_settings(node, interfaces), ip, bridge, filters)


def reminders(plan: Plan) -> Iterator[Reminder]:
    """The path MTUs that the hosts' kernels have to remember."""
    for name in plan.network.hosts():
        for promise in plan.network.nodes[name].remembers:
            for family in families_of(promise.family):
                way = plan.way(name, promise.to, family)
                if way is None:
                    continue
                address, hops, _ = way
                routers = dict.fromkeys(hop.router for hop in hops)
                detours = [(router, _detour(plan, router, promise.to, family, promise.mtu)) for router in routers]
                yield Reminder(name, address, family, promise.mtu, detours)


def _detour(plan: Plan, router: str, host: str, family: int, mtu: int) -> str:
    """A router's route with its own MTU, which is locked because forwarding would ignore it otherwise."""
    way = plan.way(router, host, family)
    assert way is not None
    return f"mtu lock {mtu} {_towards(plan, router, way)}"


def _targets(plan: Plan, name: str, promise: Promise) -> Iterator[tuple[str, str]]:
    for family in families_of(promise.family):
        if way := plan.way(name, promise.to, family):
            yield way[0], _towards(plan, name, way)


def _towards(plan: Plan, name: str, way: tuple[str, list[Hop], Interface]) -> str:
    _, hops, there = way
    if hops:
        return _via(hops)
    return "dev " + next(each.name for each in plan.interfaces[name] if each.segment == there.segment)


def _via(hops: list[Hop]) -> str:
    each = [f"via {hop.address} dev {hop.interface}" for hop in hops]
    return each[0] if len(each) == 1 else " ".join(f"nexthop {one}" for one in each)


def _settings(node: Node, interfaces: list[Interface]) -> dict[str, str]:
    """The settings of a host or router: nothing inherited by a fresh namespace, no delays, multipath by layer 4."""
    forwards = "1" if node.kind == "router" else "0"
    found = {
        "ipv4/ip_forward": forwards,
        "ipv6/conf/all/forwarding": forwards,
        "ipv4/fib_multipath_hash_policy": "1",
        "ipv6/fib_multipath_hash_policy": "1",
    }
    if node.remembers:
        found |= {f"ipv{family}/route/mtu_expires": str(REMEMBERED_SECONDS) for family in (4, 6)}
    # The cables exist already, so that "default" comes too late for them.
    for name in ("all", "default", *(each.name for each in interfaces if each.link is not None)):
        found |= {f"ipv4/conf/{name}/{key}": "0" for key in ("rp_filter", "send_redirects", "accept_redirects")}
        found |= {f"ipv6/conf/{name}/{key}": "0" for key in ("accept_dad", "accept_ra", "router_solicitations")}
    for each in interfaces:
        if each.link is not None and 6 not in each.addresses:
            found[f"ipv6/conf/{each.name}/disable_ipv6"] = "1"
    return found


def _switch_settings() -> dict[str, str]:
    found = {f"ipv6/conf/{name}/disable_ipv6": "1" for name in ("all", "default")}
    # A bridge that passes its packets to netfilter acts partly as a router: it enforces the MTU of a port exactly.
    return found | {f"bridge/bridge-nf-call-{name}?": "0" for name in ("iptables", "ip6tables", "arptables")}


def _switch(interfaces: list[Interface]) -> Iterator[str]:
    # Ports forward at once, and multicast needs no membership.
    yield f"link add name {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    yield f"link set dev {BRIDGE} up"
    for each in interfaces:
        yield f"link set dev {each.name} master {BRIDGE}"
        yield f"link set dev {each.name} up"


def _addresses(interfaces: list[Interface]) -> Iterator[str]:
    for each in interfaces:
        if each.link is not None:
            yield f"link set dev {each.name} up"
            yield from _own_addresses(each)


def _own_addresses(interface: Interface) -> Iterator[str]:
    for family, address in interface.addresses.items():
        length = "/24" if family == 4 else "/64 nodad"
        yield f"addr add {address}{length} dev {interface.name}"


def _vxlan(plan: Plan, name: str, interface: Interface) -> tuple[list[str], list[str]]:
    """The overlay's interface and its peers. It has a parent device if that has room for the overlay's MTU."""
    assert interface.overlay is not None
    overlay = plan.network.overlays[interface.overlay]
    family = overlay.underlay
    parent = next(each for each in plan.interfaces[name] if each.link is not None and family in each.addresses)
    overhead = 50 if family == 4 else 70
    below = f" dev {parent.name}" if overlay.mtu + overhead <= parent.mtu else ""
    made = f"link add name {interface.name} mtu {overlay.mtu} type vxlan id {VXLAN_NUMBER} dstport {VXLAN_PORT}"
    ip = [
        f"{made} local {parent.addresses[family]}{below}",
        f"link set dev {interface.name} up",
        *_own_addresses(interface),
    ]
    others = [end for end in overlay.ends if end != name]
    underlays = [
        next(
            each.addresses[family]
            for each in plan.interfaces[other]
            if each.link is not None and family in each.addresses
        )
        for other in others
    ]
    return ip, [f"fdb append {EVERYBODY_ELSE} dev {interface.name} dst {address}" for address in underlays]


def _ingress(plan: Plan, name: str) -> Iterator[str]:
    """Rules for packets that are dropped on arrival; never neighbour discovery, whose loss would only cause delays."""
    for number, each in enumerate(plan.interfaces[name]):
        if each.link is None:
            continue
        link = plan.network.links[each.link]
        limit = None if plan.network.nodes[name].kind == "host" else link.limit_at(name)
        rules = []
        if limit is not None:
            rules.append(f"meta protocol {{ ip, ip6 }} meta length > {limit} counter drop")
        if link.loss:
            rules.append("icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept")
            lost = round(link.loss * PARTS)
            rules.append(f"meta protocol {{ ip, ip6 }} numgen random mod {PARTS} < {lost} counter drop")
        if rules:
            hook = f"type filter hook ingress device {each.name} priority 0;"
            yield f"table netdev framegauge {{ chain from{number} {{ {hook} {'; '.join(rules)}; }}; }}"


def _forwarding(node: Node) -> Iterator[str]:
    """Rules for the ICMP errors that a router blocks, and for the MSS that it writes into SYNs."""
    blocked = [ICMP[block.icmp, family] for block in node.blocks for family in families_of(block.family)]
    if blocked:
        rules = "; ".join(f"{each} counter drop" for each in blocked)
        chains = (f"chain {hook} {{ type filter hook {hook} priority 0; {rules}; }};" for hook in ("output", "forward"))
        yield f"table inet framegauge {{ {' '.join(chains)} }}"
    if node.clamps_mss is not None:
        rule = f"tcp flags & (syn | rst) == syn tcp option maxseg size set {node.clamps_mss}"
        yield f"table inet framegauge {{ chain clamp {{ type filter hook forward priority mangle; {rule}; }}; }}"
