"""Ports of bridges and bonds that are smaller than these: what does not fit them is dropped in silence.

Which of its ports a bridge sends by is not read: if all of them are too small, the one in use is. An agent that does
not tell which interfaces are ports leaves more in doubt: any that has no address may be one.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from dataclasses import dataclass

from framegauge.check.judgement import remedies, sealed
from framegauge.check.judgement.case import SPARE_BYTES, Case
from framegauge.check.judgement.document import Host, Interface, Pair
from framegauge.check.judgement.findings import Command, Finding
from framegauge.check.judgement.hops import Node

__all__ = ["Leading", "leading_to", "own"]

_MAC = "([0-9a-f]{2}:){5}[0-9a-f]{2}"


def _may_be_ports(host: Host, bridge: Interface) -> list[Interface]:
    if host.tells_ports:
        return [port for port in host.ports(bridge) if port.up]
    return [
        port for port in host.interfaces
        if port.up and not port.addresses and port.kind != "bridge" and bridge not in host.below(port)
    ]  # fmt: skip


def _fits(interface: Interface, size: int) -> bool:
    return interface.mtu <= size <= interface.mtu + SPARE_BYTES


def _bridge(host: Host, interface: Interface | None, target: int) -> Interface | None:
    """The bridge that it is, or stands on, if that seems to take the target; or the bond, if its ports are known."""
    chain = [] if interface is None else [interface, *host.below(interface)]
    kinds = ("bridge", *(remedies.BUNDLES if host.tells_ports else ()))
    return next((device for device in chain if device.kind in kinds and device.mtu >= target), None)


def _too_small(
    case: Case, name: str, interface: Interface | None, pair: Pair
) -> tuple[Interface, list[Interface]] | None:
    """The bridge at an end of a pair and the ports that explain its size; None unless one of them must be in use."""
    host, target = case.mesh.host(name), case.mesh.target
    bridge = _bridge(host, interface, target)
    ports = [] if bridge is None else _may_be_ports(host, bridge)
    if bridge is None or not ports or max(port.mtu for port in ports) >= target or pair.path_mtu is None:
        return None
    fitting = [port for port in ports if _fits(port, pair.path_mtu)]
    if not fitting or any(port.overhead is not None or sealed.is_sealed(port) for port in fitting):
        return None
    return bridge, fitting


def own(case: Case) -> None:
    """`host_interface_too_small` of a bridge's ports: one finding a bridge."""
    able = {
        end for pair in case.mesh.pairs if pair.verdict == "carries_target"
        for end in ((pair.source, case.mesh.sender(pair)), (pair.destination, case.mesh.receiver(pair)))
    }  # fmt: skip
    groups: dict[tuple[str, str], list[tuple[Pair, Interface, list[Interface]]]] = defaultdict(list)
    for pair in case.open.values():
        if pair.is_partial or pair.is_one_ended:
            continue
        for name, interface in ((pair.source, case.mesh.sender(pair)), (pair.destination, case.mesh.receiver(pair))):
            small = None if (name, interface) in able else _too_small(case, name, interface, pair)
            if small is not None:
                groups[name, small[0].name].append((pair, *small))
    for (name, _), rows in sorted(groups.items()):
        ports = {port.name: port for _, _, ports in rows for port in ports}
        _port(case, name, rows[0][1], list(ports.values()), [pair for pair, _, _ in rows])


def _port(case: Case, name: str, bridge: Interface, ports: list[Interface], pairs: list[Pair]) -> None:
    target, on = case.mesh.target, f"host {name}"
    named = remedies.listing(port.name for port in ports)
    read = remedies.listing(f"{port.name} has {port.mtu}" for port in ports)
    limit = max(pair.path_mtu or 0 for pair in pairs)
    is_told = case.mesh.host(name).tells_ports
    none = "none of its ports" if is_told else "no interface of the host that can be its port"
    what = remedies.sentence(bridge.kind or "bridge")
    text = (
        f"{what} {bridge.name} of host {name} has an MTU of {bridge.mtu}, and {none} has {target}: {read}, and packets "
        f"above {limit} bytes are lost. A {bridge.kind} drops without an error what does not fit its port."
    )
    see = Command(f"ip link show master {shlex.quote(bridge.name)}", on, "see which of them are ports")
    keys = [pair.key for pair in pairs]
    case.add(
        Finding.about(
            "host_interface_too_small", f"host {name}, {named} below {bridge.kind} {bridge.name}", [name], keys, text,
            f"{text} {remedies.STALLS}",
            commands=(
                *(() if is_told else (see,)),
                *(line for port in ports for line in remedies.raise_port(case.mesh.host(name), port, target)),
            ),
            ask=remedies.ask_port(f"host {name}", target), spot=Node(True, name),
            facts=tuple((f"MTU of {port.name} (reading)", f"{port.mtu} bytes") for port in ports),
        ),
        keys,
    )  # fmt: skip


@dataclass(frozen=True)
class Leading:
    """That a host may be behind a small port of another host's bridge: in words, and what to do first."""

    text: str
    commands: tuple[Command, ...]


def leading_to(case: Case, name: str, interface: Interface | None, limit: int | None) -> Leading:
    """The ports of other hosts' bridges in this interface's subnet that would explain its limit; empty if none would.

    Raised before them, a guest would send what they drop."""
    target = case.mesh.target
    texts: list[str] = []
    commands: list[Command] = []
    held = [] if interface is None or limit is None else [address for address, _ in interface.addresses]
    subnets = {case.mesh.group(name, address) for address in held}
    for other in case.mesh.hosts.values():
        for bridge in other.interfaces:
            shared = subnets & {case.mesh.group(other.name, address) for address, _ in bridge.addresses}
            if other.name == name or bridge.kind != "bridge" or not shared:
                continue
            small = [port for port in _may_be_ports(other, bridge) if port.mtu < target and _fits(port, limit or 0)]
            if not small:
                continue
            ports = remedies.listing(f"{port.name} ({port.mtu})" for port in small)
            texts.append(
                f"If host {name} is behind a port of bridge {bridge.name} of host {other.name}, as a guest is, it may "
                f"be {ports} that is too small: raise that first, else what host {name} sends is lost there."
            )
            commands += _first(other, bridge, small, name, held[0], target)
    return Leading(" ".join(texts), tuple(commands))


def _first(
    other: Host, bridge: Interface, small: list[Interface], name: str, address: str, target: int
) -> tuple[Command, ...]:
    on, own_name = f"host {other.name}", shlex.quote(bridge.name)
    mac = f"\"$(ip neigh show {shlex.quote(address)} dev {own_name} | grep -oE '{_MAC}')\""
    port = shlex.quote(small[0].name) if len(small) == 1 else "PORT"
    return (
        Command(f"bridge fdb show br {own_name} | grep -i {mac}", on, f"see which port host {name} is behind"),
        Command(f"ip link set dev {port} mtu {target}", on, f"first, if host {name} is behind that port"),
    )
