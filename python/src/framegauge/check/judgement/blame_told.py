"""Faults that something owns up to: a router, a host's own interface, a tunnel whose overhead is known."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Interface, Pair, Told
from framegauge.check.judgement.findings import Finding, Key
from framegauge.check.judgement.hops import told_by_trace

__all__ = ["fragments", "interfaces", "routers", "tunnels"]

# A device may take in a little more than its MTU: room for a VLAN tag, or for the whole header and FCS.
SPARE_BYTES = 22


def _told(pair: Pair, target: int) -> list[Told]:
    """What was said about this pair, during the search or the traces, each once."""
    told = list(pair.told)
    for trace in pair.traces:
        said = told_by_trace(trace)
        if said is not None and said[0] is not None and all(said[0] != each.address for each in told):
            told.append(Told(said[0], said[1], 1))
    return [each for each in told if each.mtu is None or each.mtu < target]


def _explains(pair: Pair, mtu: int | None) -> bool:
    """Whether what was said is the whole truth: nothing smaller was measured."""
    return mtu is None or pair.path_mtu is None or pair.path_mtu >= mtu


def routers(case: Case) -> None:
    """`router_too_small`: one finding a router and size; `icmp_filtered` where it speaks to others only."""
    groups: dict[tuple[str, int | None], dict[Key, Pair]] = defaultdict(dict)
    for pair in case.faults.values():
        for each in _told(pair, case.mesh.target):
            if each.address is not None:
                groups[each.address, each.mtu][pair.key] = pair
    for (address, mtu), told in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or -1)):
        pairs = list(told.values())
        flows = [each.flows for pair in pairs for each in pair.told if (each.address, each.mtu) == (address, mtu)]
        said = "that packets are too big" if mtu is None else f"that its link takes {mtu} bytes"
        heard = f", to {remedies.count_of(sum(flows), 'flow')} of {sum(pair.probed for pair in pairs)}" if flows else ""
        evidence = [f"Router {address} says {said}, for {remedies.count_of(len(pairs), 'pair')}{heard}."]
        evidence += case.remarks(pairs, mtu)
        owner = case.mesh.owners.get(address)
        case.add(
            Finding.about(
                "router_too_small", f"router {address}" + ("" if owner is None else f" (host {owner})"),
                [] if owner is None else [owner], [pair.key for pair in pairs], " ".join(evidence),
                remedies.raise_router(case.mesh, address, case.mesh.target),
                f"Which MTU has router {address} on its way to the destination, and should it not be "
                f"{case.mesh.target}?",
            ),
            [pair.key for pair in pairs if _explains(pair, mtu)],
        )  # fmt: skip
        _filtered(case, address, mtu)


def fragments(case: Case) -> None:
    """`fragmented_on_the_way`: what must not be cut arrived in pieces. Where is unknown: all of it does arrive."""
    groups: dict[tuple[int | None, int], list[Pair]] = defaultdict(list)
    for pair in case.faults.values():
        if pair.fragmented and not pair.is_one_ended:
            groups[pair.path_mtu, pair.family].append(pair)
    for (limit, family), pairs in sorted(groups.items(), key=lambda item: (item[0][0] or -1, item[0][1])):
        few = remedies.listing(f"{pair.source} to {pair.destination}" for pair in pairs)
        cut, probed = sum(pair.fragmented for pair in pairs), sum(pair.probed for pair in pairs)
        size = "larger ones" if limit is None else f"those above {limit} bytes"
        evidence = [
            f"Packets that say that they must not be fragmented arrive in fragments, {size}: {cut} of {probed} flows, "
            f"{remedies.count_of(len(pairs), 'pair')} (IPv{family}). They were not carried whole, and nobody said so.",
            *case.remarks(pairs, limit),
        ]
        names = {pair.source for pair in pairs} | {pair.destination for pair in pairs}
        keys = [pair.key for pair in pairs]
        case.add(
            Finding.about(
                "fragmented_on_the_way", f"somewhere on the way of {few} (IPv{family})", names, keys,
                " ".join(evidence),
                "nft list ruleset | grep frag-off; ip -d link show | grep ignore-df  # on routers and tunnels that run "
                "Linux: let them keep DF, and raise the link behind them",
                f"Which router, firewall or tunnel between {remedies.host_names(names)} clears DF (clear-df, df-bit "
                f"clear) or fragments in spite of it, and which MTU has the link behind it? It should be "
                f"{case.mesh.target}.",
            ),
            keys,
        )  # fmt: skip


def _filtered(case: Case, address: str, mtu: int | None) -> None:
    """Silence behind a router that told others: its messages are lost on the way to these senders."""
    silent = [
        pair for key, pair in case.open.items()
        if pair.path_mtu == mtu and mtu is not None
        and any(not each.after.is_host and each.after.name == address for each in case.segments[key])
    ]  # fmt: skip
    if not silent:
        return
    silent += case.alike(silent)
    senders = remedies.host_names(pair.source for pair in silent)
    case.add(
        Finding.about(
            "icmp_filtered", f"between router {address} and {senders}", [pair.source for pair in silent],
            [pair.key for pair in silent],
            f"Router {address} tells other senders that its link takes {mtu} bytes. {remedies.sentence(senders)} "
            f"heard nothing, though packets above {mtu} bytes vanish behind the same router for "
            f"{remedies.count_of(len(silent), 'pair')}.",
            remedies.allow_too_big(silent[0].family),
            f"What filters ICMP (type 3 code 4, ICMPv6 type 2) from router {address} to {senders}?",
        ),
        [pair.key for pair in silent],
    )  # fmt: skip


@dataclass
class _Own:
    """What is too small at a host: its sending pairs that said so, and its receiving pairs that fit its reading."""

    interface: Interface | None
    mtu: int | None
    sending: list[Pair]
    receiving: list[Pair]


def interfaces(case: Case) -> None:
    """`host_interface_too_small` and `nic_maximum_too_small`: one finding an interface, both directions together.

    Told by the host itself as a sender; as a receiver its reading and the measured size agree. Tunnels are for
    `tunnels`.
    """
    found: dict[tuple[str, str | None], _Own] = {}
    for pair in case.faults.values():
        sender, receiver = case.mesh.sender(pair), case.mesh.receiver(pair)
        for each in _told(pair, case.mesh.target):
            if each.address is None and (sender is None or sender.overhead is None):
                name = pair.interface if sender is None else sender.name
                own = found.setdefault((pair.source, name), _Own(sender, each.mtu, [], []))
                own.sending.append(pair)
        if receiver is None or receiver.overhead is not None or pair.path_mtu is None:
            continue
        if receiver.mtu < case.mesh.target and receiver.mtu <= pair.path_mtu <= receiver.mtu + SPARE_BYTES:
            own = found.setdefault((pair.destination, receiver.name), _Own(receiver, receiver.mtu, [], []))
            own.receiving.append(pair)
    for (host, name), own in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        _interface(case, host, name, own)


def _interface(case: Case, host: str, name: str | None, own: _Own) -> None:
    target, interface = case.mesh.target, own.interface
    mtu = interface.mtu if interface is not None and own.mtu is None else own.mtu
    maximum = None if interface is None else interface.maximum_mtu
    kind = "nic_maximum_too_small" if maximum is not None and maximum < target else "host_interface_too_small"
    evidence = []
    if interface is not None:
        evidence.append(f"On host {host} {remedies.interface_text(interface)}, below the target of {target}.")
    if own.sending:
        told = "" if mtu is None else f" at {mtu}"
        evidence.append(
            f"The host itself refuses to send more{told}, for {remedies.count_of(len(own.sending), 'pair')}."
        )
    if own.receiving:
        sizes = {pair.path_mtu for pair in own.receiving if pair.path_mtu is not None}
        evidence.append(
            f"It receives {max(sizes)} bytes at most, measured over {remedies.count_of(len(own.receiving), 'pair')}."
        )
    fix = remedies.raise_mtu(case.mesh.host(host), interface, target)
    if kind == "nic_maximum_too_small":
        evidence.append(f"The device's maximum is {maximum}.")
        fix = f"Another device, driver or firmware; or a target of at most {maximum} (--target-mtu {maximum})"
    if all(pair.verdict != "carries_target" or pair.source != host for pair in case.mesh.pairs) and own.sending:
        evidence.append("Whether the network beyond carries more cannot be seen from here before that is changed.")
    where = f"host {host}" + ("" if name is None else f", interface {name}")
    pairs = [*own.sending, *own.receiving]
    closed = [pair.key for pair in own.receiving] + [pair.key for pair in own.sending if _explains(pair, mtu)]
    ask = remedies.ask_port(f"host {host}", target)
    case.add(Finding.about(kind, where, [host], [pair.key for pair in pairs], " ".join(evidence), fix, ask), closed)


def tunnels(case: Case) -> None:
    """`overlay_overhead`: the pair runs over a tunnel, and what got through, with the overhead, is its underlay's."""
    groups: dict[tuple[str, int, int | None, bool], list[tuple[Pair, Interface]]] = defaultdict(list)
    for pair in case.faults.values():
        interface = case.mesh.sender(pair)
        if interface is None or interface.overhead is None:
            continue
        host = case.mesh.host(pair.source)
        overhead = interface.overhead + sum(each.overhead or 0 for each in host.below(interface))
        own = next((each for each in _told(pair, case.mesh.target) if each.address is None), None)
        # Either the tunnel's own MTU is the limit, or something below it is smaller than the tunnel believes.
        is_own = own is not None and _explains(pair, own.mtu)
        size = own.mtu if is_own and own is not None else pair.path_mtu
        if pair.key in case.open and (is_own or size is not None):
            groups[interface.kind or "tunnel", overhead, size, is_own].append((pair, interface))
    for (kind, overhead, size, is_own), found in sorted(groups.items(), key=lambda item: str(item[0])):
        _tunnel(case, kind, overhead, size, is_own, found)


def _tunnel(
    case: Case, kind: str, overhead: int, size: int | None, is_own: bool, found: list[tuple[Pair, Interface]]
) -> None:
    target, pairs = case.mesh.target, [pair for pair, _ in found]
    names = sorted({interface.name for _, interface in found})
    hosts = {pair.source for pair in pairs} | {pair.destination for pair in pairs}
    first, tunnel = found[0]
    own_mtu = tunnel.mtu
    if is_own:
        evidence = [
            f"{kind} interface {remedies.listing(names)} has an MTU of {own_mtu if size is None else size}. With "
            f"{overhead} bytes of overhead a target of {target} needs {target + overhead} from the underlay."
        ]
    else:
        assert size is not None
        carried = size + overhead
        evidence = [
            f"{kind} interface {remedies.listing(names)} promises {own_mtu}, and {size} get through: with {overhead} "
            f"bytes of overhead that is {carried} in the underlay, where {own_mtu + overhead} would be needed."
        ]
        evidence += _underlay(case, first, tunnel, carried)
    evidence += case.remarks(pairs, size)[:2]
    fits = f", or make the tunnel fit: ip link set dev {names[0]} mtu {size}" if size is not None and not is_own else ""
    fix = (
        f"raise the underlay to {target + overhead}: its interfaces (ip link set dev PARENT mtu {target + overhead}) "
        f"and everything between them, then the tunnel's own (mtu {target}){fits}"
    )
    between = f"between {remedies.host_names(hosts)}"
    ask = f"Does every link of the underlay {between} carry IP packets of {target + overhead} bytes?"
    where = f"the underlay of {kind} {remedies.listing(names)} {between}"
    keys = [pair.key for pair in pairs]
    case.add(Finding.about("overlay_overhead", where, hosts, keys, " ".join(evidence), fix, ask), keys)


def _underlay(case: Case, pair: Pair, tunnel: Interface, carried: int) -> list[str]:
    """Measurements and readings of the underlay that agree."""
    ends = {pair.source.partition("%")[0], pair.destination.partition("%")[0]}
    for other in case.mesh.pairs:
        names = {other.source.partition("%")[0], other.destination.partition("%")[0]}
        sender = case.mesh.sender(other)
        if names == ends and other.path_mtu == carried and (sender is None or sender.overhead is None):
            return [f"The underlay itself was measured between the same hosts: {carried}."]
    for parent in case.mesh.host(pair.source).below(tunnel):
        if parent.mtu > carried:
            return [f"Its parent {parent.name} says {parent.mtu}, so the limit lies behind it."]
        if parent.mtu <= carried <= parent.mtu + SPARE_BYTES:
            return [f"That is what its parent {parent.name} says: {parent.mtu}."]
    return []
