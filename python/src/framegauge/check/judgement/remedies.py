"""What to run on Linux, what to ask the network team, and the phrases that findings share."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from framegauge.check.judgement import sealed
from framegauge.check.judgement.document import Host, Interface, Mesh, Pair
from framegauge.check.judgement.findings import Command
from framegauge.check.judgement.groups import as_people_count, family_of
from framegauge.check.judgement.hops import Node

__all__ = [
    "BUNDLES", "STALLS", "allow_too_big", "ask_link", "ask_port", "count_of", "has_room", "host_names",
    "interface_text", "listing", "look_at_rules", "pairs_text", "raise_link", "raise_members", "raise_mtu",
    "raise_or_look", "raise_port", "raise_router", "route_to", "sentence", "share_text", "show_errors", "show_routes",
    "sizes_text", "too_big", "work_around",
]  # fmt: skip

MANY = 6
# What stands on a device whose MTU it cannot exceed; in a container that device is in another network namespace.
STANDING = ("vlan", "macvlan", "macvtap", "ipvlan", "ipvtap")
BUNDLES = ("bond", "team")
MOST_PORTS = 4  # of a bridge, that are spelled out
MOST_ROUTES = 4  # host routes that are spelled out; of more pairs a sysctl is the shorter way
IPV6_LEAST = 1280
STALLS = "TCP connections that send full-size segments stall; pings and other small packets pass."
UNTIL = "workaround until the path is repaired"


def listing(names: Iterable[str], many: int = MANY) -> str:
    """`a, b and c`; beyond a few their number."""
    ordered = sorted(set(names), key=as_people_count)
    if len(ordered) > many:
        return f"{', '.join(ordered[: many - 1])} and {len(ordered) - many + 1} more"
    return " and ".join([", ".join(ordered[:-1]), ordered[-1]] if len(ordered) > 1 else ordered)


def host_names(names: Iterable[str]) -> str:
    """`host a`, or `hosts a and b`."""
    ordered = sorted(set(names), key=as_people_count)
    return f"host{'s' if len(ordered) != 1 else ''} {listing(ordered)}"


def count_of(number: int, noun: str) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def pairs_text(pairs: Iterable[Pair]) -> str:
    """`a to b and b to a`."""
    return listing(f"{pair.source} to {pair.destination}" for pair in pairs)


def sentence(text: str) -> str:
    """With a capital letter, unless it begins with an address, and the rest as it is."""
    return text if _is_address(text.partition(" ")[0]) else text[:1].upper() + text[1:]


def share_text(part: int, whole: int) -> str:
    """`8 of 32 (25%)`."""
    return f"{part} of {whole} ({part / max(whole, 1):.0%})"


def sizes_text(limit: int | None) -> str:
    """What gets lost, in a sentence about packets."""
    return "large packets are lost (the exact limit is not known)" if limit is None or limit < 0 else (
        f"packets above {limit} bytes are lost"
    )  # fmt: skip


def _set_mtu(interface: str, mtu: int) -> str:
    return f"ip link set dev {interface} mtu {mtu}"


def _is_address(text: str | None) -> bool:
    return text is not None and "/" not in text and family_of(text) is not None


def route_to(address: str | None) -> str:
    """The interface that leads to an address, as the shell finds it."""
    where = shlex.quote(address) if address is not None and _is_address(address) else "ADDRESS"
    return f"\"$(ip -o route get {where} | sed 's/.* dev \\([^ ]*\\).*/\\1/')\""


def raise_mtu(host: Host, interface: Interface | None, target_mtu: int, peer: str | None = None) -> tuple[Command, ...]:
    """The commands for a host's own interface, and for those below it that are too small, lowest first; none where
    they have the MTU already, and for a tunnel of which nothing tells what it takes. A bridge follows its ports: one
    that stays small would drop what the bridge takes in."""
    on = f"host {host.name}"
    if interface is None:
        return (Command(_set_mtu(route_to(peer), target_mtu), on),)
    if sealed.is_sealed(interface):
        return ()
    below = [
        device for device in reversed(host.below(interface)) if device.mtu < target_mtu and device.overhead is None
    ]
    commands: list[Command] = []
    for device in [*below, *([interface] if interface.mtu != target_mtu else [])]:
        name, purpose = shlex.quote(device.name), ""
        if device.kind in STANDING and device.parent is None:
            purpose = f"after the device that it stands on, in another network namespace, has {target_mtu} or more"
        if device.kind == "bridge":
            commands += _raise_ports(host, device, target_mtu)
        commands.append(Command(_set_mtu(name, target_mtu), on, purpose))
    return tuple(commands)


def _raise_ports(host: Host, bridge: Interface, target_mtu: int) -> Iterator[Command]:
    """The ports of a bridge that are too small, which come before it; where they are not known, how to see them."""
    on = f"host {host.name}"
    small = [port for port in host.ports(bridge) if port.mtu < target_mtu]
    plain = [port for port in small if port.overhead is None and not sealed.is_sealed(port)]
    if not host.tells_ports or len(plain) > MOST_PORTS or any(sealed.is_sealed(port) for port in small):
        purpose = f"first raise each port that has less than {target_mtu}, and what is behind it"
        yield Command(f"ip link show master {shlex.quote(bridge.name)}", on, purpose)
    else:
        for port in plain:
            yield from raise_port(
                host, port, target_mtu, f"a port of {bridge.name}: it and what is behind it come before the bridge"
            )
    yield from _raise_tunnels(host, bridge, target_mtu)


def raise_port(host: Host, port: Interface, target_mtu: int, purpose: str = "") -> Iterator[Command]:
    """A port of a bridge, and what it stands on, such as the device of a VLAN, before it."""
    lower = [device for device in reversed(host.below(port)) if device.mtu < target_mtu and device.overhead is None]
    for device in [*lower, port]:
        yield Command(_set_mtu(shlex.quote(device.name), target_mtu), f"host {host.name}", purpose)


def _raise_tunnels(host: Host, bridge: Interface, target_mtu: int) -> Iterator[Command]:
    """Of tunnels that are, or may be, ports of a bridge: what they run over carries their headers, too."""
    on = f"host {host.name}"
    for device in host.ports(bridge) if host.tells_ports else host.interfaces:
        parent = host.interface(device.parent)
        if device.overhead is None or parent is None or not device.up or device.mtu >= target_mtu:
            continue
        if not host.tells_ports and device.mtu != bridge.mtu:
            continue
        port = f"a port of {bridge.name}" if host.tells_ports else f"if {device.name} is a port"
        purpose = f"{port}: with {device.overhead} bytes of overhead"
        if parent.mtu < target_mtu + device.overhead:
            yield Command(_set_mtu(shlex.quote(parent.name), target_mtu + device.overhead), on, purpose)
        yield Command(_set_mtu(shlex.quote(device.name), target_mtu), on, purpose)


def raise_members(host: Host, interface: Interface | None, target_mtu: int) -> tuple[tuple[Command, ...], str]:
    """The members of a host's bundle: the commands, and advice. One that has the MTU already hands it to no member
    (the kernel changes nothing), and of a host without a bundle the members are those of its switches."""
    on, chain = f"host {host.name}", [] if interface is None else [interface, *host.below(interface)]
    bond = next((device for device in chain if device.kind in BUNDLES), None)
    if bond is None and interface is not None:
        advice = f"No bundle of host {host.name} itself is known: see to the members between its switches."
        return (), advice
    name = "BOND" if bond is None else shlex.quote(bond.name)
    look = Command(f"ip -d link show master {name}", on, "list the members of the bundle with their MTUs")
    if bond is None or bond.mtu < target_mtu:
        return (look, Command(_set_mtu(name, target_mtu), on, "raise all of its members")), ""
    small = [device for device in host.ports(bond) if device.mtu < target_mtu]
    if small:
        return tuple(Command(_set_mtu(shlex.quote(device.name), target_mtu), on, "the member") for device in small), ""
    if host.tells_ports:
        return (look,), "Its members have the MTU at the host: the other end of one is too small."
    return (look,), f"Raise each member that has less than {target_mtu} by its own name: {bond.name} has that already."


def raise_or_look(
    host: Host, interface: Interface | None, target_mtu: int, peer: str | None = None
) -> tuple[tuple[Command, ...], str]:
    """Raise an interface that is too small; of one that is not, look at its counters. The commands, and advice."""
    if interface is not None and sealed.is_sealed(interface):
        return (), sealed.advice(interface, target_mtu)
    if interface is None or interface.mtu < target_mtu:
        return raise_mtu(host, interface, target_mtu, peer), ""
    own, on, purpose = shlex.quote(interface.name), f"host {host.name}", "look for oversize frames and a smaller MTU"
    return (
        Command(f"ethtool -S {own} | grep -Ei 'long|over|jabber|giant'", on, purpose),
        Command(f"ip -d link show dev {own}", on, purpose),
        look_at_rules(on),
    ), (
        "The MTU of the interface is right. If the NIC counts oversize frames, its driver or firmware drops them; if "
        "it does not, and no rule or program of the host does, what it is connected to does."
    )


def look_at_router(mesh: Mesh, address: str, towards: str | None) -> tuple[Command, ...]:
    """The MTU that a router has on its way to an address."""
    return (Command(f"ip link show dev {route_to(towards)}", _router(mesh, address), "see its MTU on that link"),)


def look_at_rules(on: str) -> Command:
    """Rules of a host that drop packets by their length: a check may not read them, or not understand them."""
    return Command("nft list ruleset | grep -n length", on, "look for a rule that drops packets by their length")


def _router(mesh: Mesh, address: str) -> str:
    owner = mesh.owners.get(address)
    return f"router {address}, if it runs Linux" if owner is None else f"host {owner}"


def has_room(mesh: Mesh, address: str, target_mtu: int) -> bool:
    """Whether a router is a host of the check, and all of its interfaces have the target MTU."""
    held = [interface for interface in mesh.host(mesh.owners.get(address, "")).interfaces if interface.addresses]
    return bool(held) and all(interface.mtu >= target_mtu for interface in held)


def raise_router(
    mesh: Mesh, address: str, target_mtu: int, towards: str | None, size: int | None = None
) -> tuple[Command, ...]:
    """The command on a router that runs Linux, for its interface towards an address; of a host of the check, for the
    one interface that has the `size` that it reports, and if all of its interfaces have the target, look at the MTUs of
    its routes."""
    host = mesh.host(mesh.owners.get(address, ""))
    # A bridge stands for its ports.
    small = [
        interface
        for interface in host.interfaces
        if interface.up and interface.mtu == size and interface.master is None
    ]
    if len(small) == 1 and size is not None and size < target_mtu:
        return _raise_tunnel(host, small[0], target_mtu) or raise_mtu(host, small[0], target_mtu)
    if has_room(mesh, address, target_mtu):
        where = shlex.quote(towards) if towards is not None and _is_address(towards) else "ADDRESS"
        look = f"ip route get {where}", "ip route show table all | grep mtu"
        return tuple(Command(run, _router(mesh, address), "look for the mtu of a route") for run in look)
    return (Command(_set_mtu(route_to(towards), target_mtu), _router(mesh, address)),)


def _raise_tunnel(host: Host, tunnel: Interface, target_mtu: int) -> tuple[Command, ...]:
    """What a tunnel runs over comes before it, with room for its headers; none of anything else. Of one whose headers
    nobody tells, nothing is raised."""
    on, name = f"host {host.name}", shlex.quote(tunnel.name)
    if sealed.is_sealed(tunnel):
        purpose = "a tunnel: see first what the path outside of it carries"
        return (Command(f"ip -d link show dev {name}", on, purpose),)
    if tunnel.overhead is None:
        return ()
    needed, purpose = target_mtu + tunnel.overhead, f"what {tunnel.name} runs over, with {tunnel.overhead} bytes more"
    below = [device for device in reversed(host.below(tunnel)) if device.overhead is None and device.mtu < needed]
    raised = [Command(_set_mtu(shlex.quote(device.name), needed), on, purpose) for device in below]
    after = f"when every link of the underlay has {needed}"
    return (*raised, Command(_set_mtu(name, target_mtu), on, after))


def raise_link(mesh: Mesh, near: Node, far: Node, target_mtu: int) -> tuple[Command, ...]:
    """Both ends of a link between two routers."""
    return (*raise_router(mesh, near.name, target_mtu, far.name), *raise_far(mesh, far, target_mtu))


def raise_far(mesh: Mesh, far: Node, target_mtu: int) -> tuple[Command, ...]:
    """The end of a link that has the address by which its router is known; nothing where that is read to be large."""
    owner = mesh.owners.get(far.name)
    held = None if owner is None else mesh.host(owner).holding(far.name)
    if held is not None and held.mtu >= target_mtu:
        return ()
    if held is not None:
        interface = shlex.quote(held.name)
    elif _is_address(far.name):
        interface = f"\"$(ip -o addr show to {shlex.quote(far.name)} | awk '{{print $2}}')\""
    else:
        interface = "IFACE"
    return (Command(_set_mtu(interface, target_mtu), _router(mesh, far.name)),)


def too_big(family: int) -> str:
    """What "packet too big" is in a rule of nft."""
    return "icmpv6 type packet-too-big" if family == 6 else "icmp type destination-unreachable icmp code frag-needed"


def allow_too_big(family: int) -> tuple[Command, ...]:
    """The rules that let "packet too big" pass where Linux filters it."""
    on, purpose = "a router that filters ICMP with nftables", "use the names of its own table and chain"
    return (Command(f"nft insert rule inet filter forward {too_big(family)} accept", on, purpose, family),)


def work_around(pairs: Sequence[Pair], limit: int | None) -> tuple[Command, ...]:
    """What keeps TCP going until the cause is repaired. Below 1280 bytes no route of IPv6 helps, which has no smaller
    MTU (RFC 8200, section 5); TCP, which may send less, finds such a size by its own probes (RFC 4821)."""
    commands = []
    helped = [pair for pair in pairs if pair.family == 4 or limit is None or limit < 0 or limit >= IPV6_LEAST]
    if len({pair.key[:2] for pair in pairs}) <= MOST_ROUTES:
        for pair in helped:
            if pair.destination_address is None or not _is_address(pair.destination_address):
                continue
            # Rules may choose the table by the source, and a route of another table would change nothing.
            words = _route_words(pair)
            size = max(limit if limit is not None and limit >= 68 else 1500, IPV6_LEAST if pair.family == 6 else 68)
            ip, where = ("ip -6" if pair.family == 6 else "ip"), shlex.quote(pair.destination_address)
            hop = f'$(ip -o route get {words} | grep -oE "(via (inet6 )?[^ ]+ )?dev [^ ]+( table [^ ]+)?")'
            run = f"{ip} route replace {where} {hop} mtu {size}"
            commands.append(Command(run, f"host {pair.source}", UNTIL, pair.family))
    if not commands or len(helped) < len(pairs):
        senders = host_names(pair.source for pair in pairs if not commands or pair not in helped)
        commands.append(Command("sysctl -w net.ipv4.tcp_mtu_probing=1", senders, f"{UNTIL}, for TCP only"))
    return tuple(dict.fromkeys(commands))


def interface_text(interface: Interface) -> str:
    """An interface and its reading, for evidence."""
    driver = f" (driver {interface.driver})" if interface.driver else ""
    return f"{interface.name}{driver} has an MTU of {interface.mtu}"


def ask_port(names: str, target_mtu: int, interface: Interface | None = None) -> str:
    """About a host's port, or about what a tunnel runs over, which has none."""
    if interface is not None and sealed.is_sealed(interface):
        return sealed.ask(interface, target_mtu)
    return (
        f"What is the MTU (or the largest frame) of the switch port of {names}, configured and in hardware? It must "
        f"carry IP packets of {target_mtu} bytes; some vendors include headers in their figure. Do its counters of "
        "oversize frames rise?"
    )


def ask_link(where: str, target_mtu: int) -> str:
    """About a link between routers or switches."""
    return (
        f"What is the MTU at both ends of the link {where}, and on every switch in between? It must carry IP packets "
        f"of {target_mtu} bytes. Do counters of oversize frames or of failed fragmentation rise there?"
    )


def _route_words(pair: Pair) -> str:
    """What the kernel is asked for the route of a pair's packets: a destination, and the source where it is known."""
    where = shlex.quote(pair.destination_address or "ADDRESS")
    return f"{where} from {shlex.quote(pair.source_address or '')}" if _is_address(pair.source_address) else where


def show_routes(pairs: Sequence[Pair]) -> tuple[Command, ...]:
    """How the senders route packets to their destinations."""
    known = [pair for pair in pairs if _is_address(pair.destination_address)]
    commands = [
        Command(f"ip route get {_route_words(pair)}", f"host {pair.source}", "", pair.family)
        for pair in known[:MOST_ROUTES]
    ]  # fmt: skip
    return tuple(commands)


def show_errors(on: str) -> tuple[Command, ...]:
    """Counters of errors and drops of every interface."""
    return (Command("ip -s -s link show", on, "look for errors and drops"),)
