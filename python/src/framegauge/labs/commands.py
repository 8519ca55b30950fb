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
        for nic in interfaces:
            if nic.link is not None:
                ends.setdefault(nic.link, []).append((node, nic))

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
    for interface in interfaces:
        if interface.overlay is not None:
            commands, peers = _vxlan(plan, name, interface)
            ip, bridge = [*ip, *commands], [*bridge, *peers]
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
                route = plan.way(name, promise.to, family)
                if route is None:
                    continue
                address, hops, _ = route
                routers = dict.fromkeys(hop.router for hop in hops)
                detours = [(router, _detour(plan, router, promise.to, family, promise.mtu)) for router in routers]
                yield Reminder(name, address, family, promise.mtu, detours)


def _detour(plan: Plan, router: str, host: str, family: int, mtu: int) -> str:
    """A router's route with its own MTU, which is locked because forwarding would ignore it otherwise."""
    route = plan.way(router, host, family)
    assert route is not None
    return f"mtu lock {mtu} {_towards(plan, router, route)}"


def _targets(plan: Plan, name: str, promise: Promise) -> Iterator[tuple[str, str]]:
    for family in families_of(promise.family):
        if route := plan.way(name, promise.to, family):
            yield route[0], _towards(plan, name, route)


def _towards(plan: Plan, name: str, route: tuple[str, list[Hop], Interface]) -> str:
    _, hops, far_end = route
    if hops:
        return _via(hops)
    return "dev " + next(interface.name for interface in plan.interfaces[name] if interface.segment == far_end.segment)


def _via(hops: list[Hop]) -> str:
    nexthops = [f"via {hop.address} dev {hop.interface}" for hop in hops]
    return nexthops[0] if len(nexthops) == 1 else " ".join(f"nexthop {nexthop}" for nexthop in nexthops)


def _settings(node: Node, interfaces: list[Interface]) -> dict[str, str]:
    """The settings of a host or router: nothing inherited by a fresh namespace, no delays, multipath by layer 4."""
    forwards = "1" if node.kind == "router" else "0"
    settings = {
        "ipv4/ip_forward": forwards,
        "ipv6/conf/all/forwarding": forwards,
        "ipv4/fib_multipath_hash_policy": "1",
        "ipv6/fib_multipath_hash_policy": "1",
    }
    if node.remembers:
        settings |= {f"ipv{family}/route/mtu_expires": str(REMEMBERED_SECONDS) for family in (4, 6)}
    # The cables exist already, so that "default" comes too late for them.
    for name in ("all", "default", *(interface.name for interface in interfaces if interface.link is not None)):
        settings |= {f"ipv4/conf/{name}/{key}": "0" for key in ("rp_filter", "send_redirects", "accept_redirects")}
        settings |= {f"ipv6/conf/{name}/{key}": "0" for key in ("accept_dad", "accept_ra", "router_solicitations")}
    for interface in interfaces:
        if interface.link is not None and 6 not in interface.addresses:
            settings[f"ipv6/conf/{interface.name}/disable_ipv6"] = "1"
    return settings


def _switch_settings() -> dict[str, str]:
    settings = {f"ipv6/conf/{name}/disable_ipv6": "1" for name in ("all", "default")}
    # A bridge that passes its packets to netfilter acts partly as a router: it enforces the MTU of a port exactly.
    return settings | {f"bridge/bridge-nf-call-{name}?": "0" for name in ("iptables", "ip6tables", "arptables")}


def _switch(interfaces: list[Interface]) -> Iterator[str]:
    # Ports forward at once, and multicast needs no membership.
    yield f"link add name {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    yield f"link set dev {BRIDGE} up"
    for interface in interfaces:
        yield f"link set dev {interface.name} master {BRIDGE}"
        yield f"link set dev {interface.name} up"


def _addresses(interfaces: list[Interface]) -> Iterator[str]:
    for interface in interfaces:
        if interface.link is not None:
            yield f"link set dev {interface.name} up"
            yield from _own_addresses(interface)


def _own_addresses(interface: Interface) -> Iterator[str]:
    for family, address in interface.addresses.items():
        length = "/24" if family == 4 else "/64 nodad"
        yield f"addr add {address}{length} dev {interface.name}"


def _vxlan(plan: Plan, name: str, interface: Interface) -> tuple[list[str], list[str]]:
    """The overlay's interface and its peers. It has a parent device if that has room for the overlay's MTU."""
    assert interface.overlay is not None
    overlay = plan.network.overlays[interface.overlay]
    family = overlay.underlay
    parent = next(nic for nic in plan.interfaces[name] if nic.link is not None and family in nic.addresses)
    overhead = 50 if family == 4 else 70
    below = f" dev {parent.name}" if overlay.mtu + overhead <= parent.mtu else ""
    command = f"link add name {interface.name} mtu {overlay.mtu} type vxlan id {VXLAN_NUMBER} dstport {VXLAN_PORT}"
    ip = [
        f"{command} local {parent.addresses[family]}{below}",
        f"link set dev {interface.name} up",
        *_own_addresses(interface),
    ]
    peers = [end for end in overlay.ends if end != name]
    underlays = [
        next(nic.addresses[family] for nic in plan.interfaces[peer] if nic.link is not None and family in nic.addresses)
        for peer in peers
    ]
    return ip, [f"fdb append {EVERYBODY_ELSE} dev {interface.name} dst {address}" for address in underlays]


def _ingress(plan: Plan, name: str) -> Iterator[str]:
    """Rules for packets that are dropped on arrival; never neighbour discovery, whose loss would only cause delays."""
    for number, interface in enumerate(plan.interfaces[name]):
        if interface.link is None:
            continue
        link = plan.network.links[interface.link]
        limit = None if plan.network.nodes[name].kind == "host" else link.limit_at(name)
        rules = []
        if limit is not None:
            rules.append(f"meta protocol {{ ip, ip6 }} meta length > {limit} counter drop")
        if link.loss:
            rules.append("icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept")
            threshold = round(link.loss * PARTS)
            rules.append(f"meta protocol {{ ip, ip6 }} numgen random mod {PARTS} < {threshold} counter drop")
        if rules:
            hook = f"type filter hook ingress device {interface.name} priority 0;"
            yield f"table netdev framegauge {{ chain from{number} {{ {hook} {'; '.join(rules)}; }}; }}"


def _forwarding(node: Node) -> Iterator[str]:
    """Rules for the ICMP errors that a router blocks, and for the MSS that it writes into SYNs."""
    blocked = [ICMP[block.icmp, family] for block in node.blocks for family in families_of(block.family)]
    if blocked:
        rules = "; ".join(f"{icmp_error} counter drop" for icmp_error in blocked)
        chains = (f"chain {hook} {{ type filter hook {hook} priority 0; {rules}; }};" for hook in ("output", "forward"))
        yield f"table inet framegauge {{ {' '.join(chains)} }}"
    if node.clamps_mss is not None:
        rule = f"tcp flags & (syn | rst) == syn tcp option maxseg size set {node.clamps_mss}"
        yield f"table inet framegauge {{ chain clamp {{ type filter hook forward priority mangle; {rule}; }}; }}"
