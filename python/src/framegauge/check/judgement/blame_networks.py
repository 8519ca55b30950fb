"""Networks that are small as a whole: every interface in a subnet that is known has the same MTU, below the target.
That is one setting, of whoever made the network, and one finding, however many hosts are in it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from framegauge.check.judgement import remedies, sealed
from framegauge.check.judgement.blame_errors import explains
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Interface, Pair
from framegauge.check.judgement.findings import Command, Finding
from framegauge.check.judgement.hops import Node

__all__ = ["Own", "leading", "networks"]

MOST_COMMANDS = 8
# As Docker calls the bridges that it makes; containers keep the MTU with which they were made.
DOCKER = re.compile(r"docker0|br-[0-9a-f]{12}|docker_gwbridge")
TOGETHER = (
    "Raise them together, as framegauge rollout does: a host that is raised first sends what the others do not take in."
)

Key = tuple[str, str | None]  # a host and its interface
Subnets = frozenset[str]


@dataclass
class Own:
    """What is too small at a host: its sending pairs that said so, and its receiving pairs that fit its reading."""

    interface: Interface | None
    mtu: int | None
    sending: list[Pair]
    receiving: list[Pair]


@dataclass(frozen=True)
class Leading:
    """Routers whose last link, to the receivers, is as small as these: in words, and what raises it."""

    texts: tuple[str, ...]
    commands: tuple[Command, ...]


def leading(case: Case, mtu: int | None, receiving: Iterable[Pair]) -> Leading:
    """The routers that told of just the size of their neighbour, which a packet would have reached next: both ends of
    one link are one cause."""
    pairs: dict[str, list[Pair]] = defaultdict(list)
    for pair in receiving:
        for report in pair.told if mtu is not None else ():
            # A host of the check has readings of its own, and is one of those that a network's finding names.
            if report.address in case.mesh.owners or report.address is None:
                continue
            if report.mtu == mtu and _is_last(pair, report.address):
                pairs[report.address].append(pair)
                case.led.add((report.address, mtu or 0, pair.key))
    routers = sorted(pairs)
    return Leading(
        tuple(
            f"Router {address}, which leads there, has {mtu} on that link as well and says so in ICMP errors: both "
            "ends of the link are to be raised."
            for address in routers
        ),
        tuple(
            command for address in routers
            for command in remedies.raise_router(
                case.mesh, address, case.mesh.target, pairs[address][0].destination_address, mtu
            )
        ),
    )  # fmt: skip


def _is_last(pair: Pair, address: str) -> bool:
    """Whether what the router refused would have come to the destination next."""
    refused = [hop for trace in pair.traces for hop in trace.hops if hop.large == "too_big"]
    return any(hop.large_address == address for hop in refused) and all(hop.small == "delivered" for hop in refused)


def networks(case: Case, owns: Mapping[Key, Own]) -> set[Key]:
    """`host_interface_too_small` of whole networks; which of the interfaces that explains."""
    groups: dict[tuple[Subnets, int], list[Key]] = defaultdict(list)
    for key, own in owns.items():
        if own.mtu is not None and (subnets := _subnets(case, key[0], own) or _facing(case, own, owns)):
            groups[subnets, own.mtu].append(key)
    joined: set[Key] = set()
    for (subnets, mtu), keys in sorted(groups.items(), key=str):
        if len({host for host, _ in keys}) > 1 and all(held.mtu == mtu for held in _held(case, subnets)):
            _network(case, subnets, mtu, {key: owns[key] for key in sorted(keys, key=str)})
            joined |= set(keys)
    return joined


def _subnets(case: Case, host: str, own: Own) -> Subnets:
    """Those of an interface that may be one of many alike; none of one that is small for a reason of its own."""
    interface = own.interface
    if interface is None or interface.mtu != own.mtu or interface.overhead is not None or sealed.is_sealed(interface):
        return frozenset()
    if interface.maximum_mtu is not None and interface.maximum_mtu < case.mesh.target:
        return frozenset()
    return frozenset(case.mesh.group(host, address) for address, _ in interface.addresses)


def _facing(case: Case, own: Own, owns: Mapping[Key, Own]) -> Subnets:
    """Those of the one host that is behind a veth without an address, as a node has for each of its pods: the two ends
    of one link."""
    receivers = {pair.destination for pair in own.sending}
    if own.interface is None or own.interface.addresses or own.interface.kind != "veth" or len(receivers) != 1:
        return frozenset()
    ends = [(host, other) for (host, _), other in owns.items() if host in receivers and other.mtu == own.mtu]
    return _subnets(case, *ends[0]) if len(ends) == 1 else frozenset()


def _held(case: Case, subnets: Collection[str]) -> list[Interface]:
    """All interfaces with an address there."""
    return [
        interface
        for host in case.mesh.hosts.values()
        for interface in host.interfaces
        if any(case.mesh.group(host.name, address) in subnets for address, _ in interface.addresses)
    ]


def _network(case: Case, subnets: Subnets, mtu: int, owns: Mapping[Key, Own]) -> None:
    target, hosts = case.mesh.target, {host for host, _ in owns}
    named = remedies.listing(f"{name} of {host}" for host, name in owns)
    where = remedies.listing(subnets)
    sending = {pair.key: pair for own in owns.values() for pair in own.sending}
    receiving = {pair.key: pair for own in owns.values() for pair in own.receiving}
    text = (
        f"{'Both' if len(owns) == 2 else f'All {len(owns)}'} interfaces in {where} that were checked have an MTU of "
        f"{mtu}, and the target is {target}: "
        f"{named}."
    )
    summary = [text]
    summary += ["Their hosts cannot send larger packets."] if sending else []
    if any(pair.verdict == "black_hole" for pair in receiving.values()):
        summary.append(f"Larger packets that others send to them are lost without an error. {remedies.STALLS}")
    routers = leading(case, mtu, receiving.values())
    summary += routers.texts
    if not any(pair.verdict == "carries_target" for pair in case.mesh.pairs if pair.source in hosts):
        summary.append("What the network carries can only be measured after this is changed.")
    closed = [*receiving, *(key for key, pair in sending.items() if explains(pair, mtu))]
    case.networks.append((subnets, mtu, hosts))
    case.add(
        Finding.about(
            "host_interface_too_small", f"{remedies.host_names(hosts)}, network {where}", hosts, [*sending, *receiving],
            f"{text} Their own kernels refuse larger packets, or these readings and the measured sizes agree.",
            " ".join(summary), advice=_advice(owns, target),
            commands=(*routers.commands, *_commands(case, owns))[:MOST_COMMANDS],
            ask=f"Is {where} meant to carry {target} bytes, and does every switch port of it?",
            spot=Node(True, min(pair.source for pair in sending.values()) if sending else min(hosts)),
            facts=(("MTU of the interfaces (readings)", f"{mtu} bytes"),), limit=mtu,
        ),
        closed,
    )  # fmt: skip


def _advice(owns: Iterable[Key], target: int) -> str:
    bridges = [(host, name) for host, name in owns if name is not None and DOCKER.fullmatch(name)]
    if not bridges:
        return TOGETHER
    on = remedies.host_names(host for host, _ in bridges)
    return (
        f'It is a network of Docker, whose MTU is that of the daemon on {on} ("mtu": {target} in '
        "/etc/docker/daemon.json, then restart dockerd) or, of a network with a name, its option "
        f"com.docker.network.driver.mtu={target}. Containers keep what they were made with: make them anew. The "
        "commands below try it, until then."
    )


def _commands(case: Case, owns: Mapping[Key, Own]) -> tuple[Command, ...]:
    """Bridges come first; of hosts that need the same command one line."""
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    ordered = sorted(owns.items(), key=lambda item: item[1].interface is None or item[1].interface.kind != "bridge")
    for (host, _), own in ordered:
        commands, _ = remedies.raise_or_look(case.mesh.host(host), own.interface, case.mesh.target)
        for command in commands:
            names[command.run, command.purpose].append(host)
    return tuple(Command(run, remedies.host_names(hosts), why) for (run, why), hosts in names.items())
