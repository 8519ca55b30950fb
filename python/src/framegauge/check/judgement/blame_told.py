"""Faults that packets themselves report: fragments, a host's own interface, a tunnel whose overhead is known."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence

from framegauge.check.judgement import blame_ports, remedies
from framegauge.check.judgement.blame_errors import bridged_tunnel, explains, reports
from framegauge.check.judgement.blame_networks import Own, leading, networks
from framegauge.check.judgement.case import SPARE_BYTES, Case
from framegauge.check.judgement.document import Interface, Pair
from framegauge.check.judgement.findings import Command, Finding
from framegauge.check.judgement.hops import Node

__all__ = ["bridged_tunnels", "fragments", "interfaces", "tunnels"]

IN_NAME = (
    "The kernel refuses larger packets with an ICMP error, in the name of the far end. TCP adapts to the smaller size; "
    "applications that send large UDP packets with DF set fail."
)
MOST_ENDS = 4  # hosts of a tunnel whose commands are spelled out


def fragments(case: Case) -> None:
    """`fragmented_on_the_way`: packets with DF set arrived in fragments. The link is unknown: all of them arrive."""
    groups: dict[tuple[int | None, int], list[Pair]] = defaultdict(list)
    for pair in case.faults.values():
        if pair.fragmented and not pair.is_one_ended:
            groups[pair.path_mtu, pair.family].append(pair)
    for (limit, family), pairs in sorted(groups.items(), key=lambda item: (item[0][0] or -1, item[0][1])):
        cut, probed = sum(pair.fragmented for pair in pairs), sum(pair.probed for pair in pairs)
        size = "of unknown sizes" if limit is None else f"above {limit} bytes"
        evidence = [
            f"Packets with DF set arrive in fragments {size}: {cut} of {probed} flows, "
            f"{remedies.count_of(len(pairs), 'pair')} (IPv{family}). No ICMP error was received.",
            *case.remarks(pairs, limit),
        ]
        names = {pair.source for pair in pairs} | {pair.destination for pair in pairs}
        keys = [pair.key for pair in pairs]
        on = "routers and tunnel endpoints that run Linux"
        case.add(
            Finding.about(
                "fragmented_on_the_way", f"unknown link: {remedies.pairs_text(pairs)} (IPv{family})", names, keys,
                " ".join(evidence),
                f"Packets {size} arrive in fragments on the path from {remedies.pairs_text(pairs)}, although they "
                "have DF (don't fragment) set. Some device clears DF or ignores it in front of a smaller link. "
                "Fragments cost CPU time, one lost fragment loses the whole packet, and many firewalls drop them.",
                commands=(
                    Command("nft list ruleset | grep frag-off", on, "look for a rule that clears DF"),
                    Command("ip -d link show | grep ignore-df", on, "look for a tunnel that ignores DF"),
                ),
                advice="Let the device keep DF, and raise the MTU of the link behind it.",
                ask=f"Which router, firewall or tunnel between {remedies.host_names(names)} clears DF (clear-df, "
                f"df-bit clear) or fragments despite it, and what is the MTU of the link behind it? It should be "
                f"{case.mesh.target}.",
            ),
            keys,
        )  # fmt: skip


def interfaces(case: Case) -> None:
    """`host_interface_too_small` and `nic_maximum_too_small`: one finding an interface, both directions together, or
    one for a network that is small as a whole.

    Told by the host itself as a sender; as a receiver its reading and the measured size agree. Tunnels are for
    `tunnels`.
    """
    by_interface: dict[tuple[str, str | None], Own] = {}
    for pair in case.faults.values():
        sender, receiver = case.mesh.sender(pair), case.mesh.receiver(pair)
        for report in reports(pair, case.mesh.target):
            if report.address is None and (sender is None or sender.overhead is None):
                name = pair.interface if sender is None else sender.name
                own = by_interface.setdefault((pair.source, name), Own(sender, report.mtu, [], []))
                own.sending.append(pair)
        if receiver is None or receiver.overhead is not None or pair.path_mtu is None:
            continue
        if receiver.mtu < case.mesh.target and receiver.mtu <= pair.path_mtu <= receiver.mtu + SPARE_BYTES:
            own = by_interface.setdefault((pair.destination, receiver.name), Own(receiver, receiver.mtu, [], []))
            own.receiving.append(pair)
    joined = networks(case, by_interface)
    for (host, name), own in sorted(by_interface.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        if (host, name) not in joined:
            _interface(case, host, name, own)


def _interface(case: Case, host: str, name: str | None, own: Own) -> None:
    target, interface = case.mesh.target, own.interface
    mtu = interface.mtu if interface is not None and own.mtu is None else own.mtu
    maximum = None if interface is None else interface.maximum_mtu
    kind = "nic_maximum_too_small" if maximum is not None and maximum < target else "host_interface_too_small"
    evidence = []
    if interface is not None:
        evidence.append(f"On host {host} {remedies.interface_text(interface)}, below the target of {target}.")
    if own.sending:
        limit = "" if mtu is None else f" above {mtu} bytes"
        evidence.append(
            f"The host's own kernel refuses to send packets{limit}, for {remedies.count_of(len(own.sending), 'pair')}."
        )
    if own.receiving:
        sizes = {pair.path_mtu for pair in own.receiving if pair.path_mtu is not None}
        evidence.append(
            f"It receives at most {max(sizes)} bytes, measured over {remedies.count_of(len(own.receiving), 'pair')}."
        )
    what = f"host {host}" if name is None else f"interface {name} of host {host}"
    size = "an MTU below the target" if mtu is None else f"an MTU of {mtu}; the target is {target}"
    summary = [f"{remedies.sentence(what)} has {size}."]
    summary += ["The host cannot send larger packets."] if own.sending else []
    summary += (
        [f"Larger packets that others send to it are lost without an error. {remedies.STALLS}"]
        if any(pair.verdict == "black_hole" for pair in own.receiving)
        else []
    )
    if mtu is not None and any((pair.path_mtu or 0) > mtu for pair in own.receiving):
        summary.append("A few bytes more than its MTU still arrive: drivers leave room for a VLAN tag.")
    commands, advice = remedies.raise_or_look(case.mesh.host(host), interface, target, _peer(own))
    before, routers = blame_ports.leading_to(case, host, interface, mtu), leading(case, mtu, own.receiving)
    commands = (*routers.commands, *before.commands, *commands)
    summary += [*routers.texts, *([before.text] if before.text else [])]
    if kind == "nic_maximum_too_small":
        evidence.append(f"The maximum of the device is {maximum}.")
        summary.append(f"The device supports at most {maximum} bytes.")
        advice = f"Use another NIC, driver or firmware, or a target of at most {maximum} (--mtu {maximum})."
        commands = ()
    if all(pair.verdict != "carries_target" or pair.source != host for pair in case.mesh.pairs) and own.sending:
        beyond = "What the network beyond it carries can only be measured after this is changed."
        evidence.append(beyond)
        summary.append(beyond)
    where = f"host {host}" + ("" if name is None else f", interface {name}")
    pairs = [*own.sending, *own.receiving]
    closed = [pair.key for pair in own.receiving] + [pair.key for pair in own.sending if explains(pair, mtu)]
    facts = [] if interface is None else [("MTU of the interface (reading)", f"{interface.mtu} bytes")]
    facts += [("Maximum of the device", f"{maximum} bytes")] if kind == "nic_maximum_too_small" else []
    case.add(
        Finding.about(
            kind, where, [host], [pair.key for pair in pairs], " ".join(evidence), " ".join(summary), advice=advice,
            commands=commands, ask=remedies.ask_port(f"host {host}", target, interface), spot=Node(True, host),
            facts=tuple(facts), limit=mtu,
        ),
        closed,
    )  # fmt: skip


def _peer(own: Own) -> str | None:
    return own.sending[0].destination_address if own.sending else own.receiving[0].source_address


def tunnels(case: Case) -> None:
    """`overlay_overhead`: the pair runs over a tunnel, and what got through, with the overhead, is its underlay's."""
    groups: dict[tuple[str, int, int | None, bool], list[tuple[Pair, Interface]]] = defaultdict(list)
    for pair in case.faults.values():
        interface = case.mesh.sender(pair)
        if interface is None or interface.overhead is None:
            continue
        host = case.mesh.host(pair.source)
        overhead = interface.overhead + sum(entry.overhead or 0 for entry in host.below(interface))
        own = next((entry for entry in reports(pair, case.mesh.target) if entry.address is None), None)
        # Either the tunnel's own MTU is the limit, or something below it is smaller than the tunnel believes.
        is_own = own is not None and explains(pair, own.mtu)
        size = own.mtu if is_own and own is not None else pair.path_mtu
        if pair.key in case.open and (is_own or size is not None):
            groups[interface.kind or "tunnel", overhead, size, is_own].append((pair, interface))
    for (kind, overhead, size, is_own), group in sorted(groups.items(), key=lambda item: str(item[0])):
        through = [] if is_own else _through(case, size, {pair.source for pair, _ in group})
        _tunnel(case, kind, overhead, size, is_own, group, through=through)


def _through(case: Case, size: int | None, ends: set[str]) -> list[Pair]:
    """Other pairs that lose just what the tunnel between these hosts does, and cross it, as those of containers do."""
    crossing = []
    for pair in case.open.values():
        hops = {hop.address for trace in pair.traces for hop in trace.hops}
        hosts = {owner for address, owner in case.mesh.owners.items() if address in hops}
        interface = case.mesh.sender(pair)
        is_inside = interface is not None and interface.overhead is not None
        if pair.path_mtu == size and not is_inside and len(ends & {pair.source, pair.destination, *hosts}) > 1:
            crossing.append(pair)
    return crossing


def bridged_tunnels(case: Case) -> None:
    """`overlay_overhead` of a tunnel that is a port of a bridge: no interface of the pair, and it says so itself."""
    groups: dict[tuple[str, int, int], list[tuple[Pair, Interface]]] = defaultdict(list)
    for pair in case.open.values():
        for report in reports(pair, case.mesh.target):
            tunnel = bridged_tunnel(case, pair, report)
            if tunnel is not None and report.mtu is not None and explains(pair, report.mtu):
                groups[tunnel.kind or "tunnel", tunnel.overhead or 0, report.mtu].append((pair, tunnel))
    for (kind, overhead, size), group in sorted(groups.items()):
        _tunnel(case, kind, overhead, size, False, group, in_name=True)


def _tunnel(
    case: Case,
    kind: str,
    overhead: int,
    size: int | None,
    is_own: bool,
    tunnel_pairs: list[tuple[Pair, Interface]],
    in_name: bool = False,
    through: Sequence[Pair] = (),
) -> None:
    target, pairs = case.mesh.target, [pair for pair, _ in tunnel_pairs]
    names = remedies.listing({interface.name for _, interface in tunnel_pairs})
    hosts = {pair.source for pair in pairs} | {pair.destination for pair in pairs}
    first, tunnel = tunnel_pairs[0]
    between = f"between {remedies.host_names(hosts)}"
    facts = [("MTU of the tunnel (reading)", f"{tunnel.mtu} bytes"), ("Overhead of the tunnel", f"{overhead} bytes")]
    # Then the tunnel itself is what is small, as far as readings go.
    has_room = is_own and _is_underlay_between(case, tunnel_pairs, target + overhead)
    if is_own:
        text = (
            f"{kind} interface {names} has an MTU of {tunnel.mtu if size is None else size}. With {overhead} bytes of "
            f"overhead a target of {target} needs an underlay MTU of {target + overhead}."
        )
        text += " The hosts' own interfaces below it have that." if has_room else ""
        evidence, summary = [text], f"{text} The hosts cannot send larger packets through the tunnel."
        facts.append(("The underlay needs", f"{target + overhead} bytes"))
    else:
        assert size is not None
        carried, needed = size + overhead, tunnel.mtu + overhead
        text = f"{kind} interface {names} has an MTU of {tunnel.mtu}, but only packets of up to {size} bytes arrive"
        evidence = [
            f"{text}: with {overhead} bytes of overhead that is {carried} bytes in the underlay, which needs {needed}."
        ]
        evidence += _underlay(case, first, tunnel, carried)
        far = _is_underlay_between(case, tunnel_pairs, needed)
        summary = (
            f"{text} {between}. With {overhead} bytes of overhead the underlay carries {carried} bytes and needs "
            f"{needed}. "
        )
        summary += "The hosts' own interfaces below it have that: what is small lies between them. " if far else ""
        summary += IN_NAME if in_name else f"Larger packets inside the tunnel are lost: {remedies.STALLS}"
        facts += [("The underlay carries", f"{carried} bytes"), ("The underlay needs", f"{needed} bytes")]
    evidence += case.remarks(pairs, size)[:2]
    crossing = [f"What crosses the tunnel loses the same sizes: {remedies.pairs_text(through)}."] if through else []
    keys = [pair.key for pair in [*pairs, *through]]
    case.add(
        Finding.about(
            "host_interface_too_small" if has_room else "overlay_overhead",
            f"{kind} {names} {between}" if has_room else f"the underlay of {kind} {names} {between}", hosts, keys,
            " ".join([*evidence, *crossing]), " ".join([summary, *crossing]),
            advice=f"Raise every switch and router of the underlay to {target + overhead} first, then the hosts.",
            commands=_tunnel_commands(case, tunnel_pairs, target, overhead, None if is_own else size),
            ask=f"Does every link of the underlay {between} carry IP packets of {target + overhead} bytes?",
            facts=tuple(facts), spot=Node(True, first.source) if is_own else None,
        ),
        keys,
    )  # fmt: skip


def _tunnel_commands(
    case: Case, tunnel_pairs: list[tuple[Pair, Interface]], target: int, overhead: int, fits: int | None
) -> tuple[Command, ...]:
    """Raise the underlay and then the tunnel; or make the tunnel fit what the underlay carries."""
    ends = {(pair.source, interface.name): interface for pair, interface in tunnel_pairs}
    raised, fitted = [], []
    for (name, _), interface in sorted(ends.items())[:MOST_ENDS]:
        on, own = f"host {name}", shlex.quote(interface.name)
        parents = [device for device in case.mesh.host(name).below(interface) if device.overhead is None]
        # What has the size already is no remedy: then it is the underlay between the hosts that is small.
        small = [shlex.quote(device.name) for device in reversed(parents) if device.mtu < target + overhead]
        raised += [
            Command(f"ip link set dev {device} mtu {target + overhead}", on, "raise the underlay")
            for device in (small if parents else ["PARENT"])
        ]
        if interface.mtu < target:
            purpose = "raise the underlay" if small or not parents else "raise the tunnel"
            raised.append(Command(f"ip link set dev {own} mtu {target}", on, purpose))
        if fits is not None and interface.mtu != max(fits, 68):
            purpose = "or fit the tunnel to the underlay"
            fitted.append(Command(f"ip link set dev {own} mtu {max(fits, 68)}", on, purpose))
    return (*raised, *fitted)


def _is_underlay_between(case: Case, tunnel_pairs: list[tuple[Pair, Interface]], needed: int) -> bool:
    """Whether everything below each of these tunnels has room at its host, so that what is small lies between."""
    below = [case.mesh.host(pair.source).below(interface) for pair, interface in tunnel_pairs]
    return all(parents and min(parent.mtu for parent in parents) >= needed for parents in below)


def _underlay(case: Case, pair: Pair, tunnel: Interface, carried: int) -> list[str]:
    """Measurements and readings of the underlay that agree."""
    ends = {pair.source.partition("%")[0], pair.destination.partition("%")[0]}
    for other in case.mesh.pairs:
        names = {other.source.partition("%")[0], other.destination.partition("%")[0]}
        sender = case.mesh.sender(other)
        if names == ends and other.path_mtu == carried and (sender is None or sender.overhead is None):
            return [f"The underlay itself was measured between the same hosts: {carried} bytes."]
    for parent in case.mesh.host(pair.source).below(tunnel):
        if parent.mtu > carried:
            return [f"Its parent {parent.name} has an MTU of {parent.mtu}, so the limit is further along the underlay."]
        if parent.mtu <= carried <= parent.mtu + SPARE_BYTES:
            return [f"Its parent {parent.name} has this MTU: {parent.mtu}."]
    return []
