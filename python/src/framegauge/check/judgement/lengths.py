"""Which rules of hosts drop just what a pair loses, as they were read: by the size, the direction and the device."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from framegauge.check.judgement.document import Filter, Host, Interface, LengthRule, Mesh, Pair

__all__ = ["Place", "line_words", "places", "rule_text"]

_IN = ("ingress", "prerouting", "input")
_OUT = ("output", "postrouting", "egress")
_THROUGH = ("ingress", "prerouting", "forward", "postrouting", "egress")


@dataclass(frozen=True)
class Place:
    """A rule, its host, and what that host does with the packets: receives, sends, forwards or bridges them."""

    host: str
    role: str
    rule: LengthRule


def line_words(line: str | None) -> str | None:
    """A rule of iptables without its `-A`, safe for a shell: its comment may hold anything. None for a policy."""
    try:
        words = shlex.split(line or "")
    except ValueError:
        return None
    return shlex.join(words[1:]) if words[:1] == ["-A"] else None


def rule_text(rule: LengthRule | Filter) -> str:
    """The rule for people."""
    if rule.line is not None:
        return f"{rule.line} of table {rule.table} of {_program(rule)}"
    if rule.by_iptables:
        return f"the policy of chain {rule.chain} in table {rule.table} of {_program(rule)}"
    what = "the policy" if rule.handle is None else f"handle {rule.handle}"
    return f"{what} of chain {rule.chain} in table {rule.family} {rule.table}"


def _program(rule: LengthRule | Filter) -> str:
    return "ip6tables" if rule.ip_version == 6 else "iptables"


def places(mesh: Mesh, pair: Pair) -> Iterator[Place]:
    """Those that leave alone the largest packet of the pair that arrives, and drop what is larger."""
    ends: list[tuple[str, str, tuple[str, ...], Interface | None]] = [
        (pair.destination, "receives", _IN, mesh.receiver(pair)), (pair.source, "sends", _OUT, mesh.sender(pair)),
    ]  # fmt: skip
    if pair.is_one_ended:
        ends.append((pair.source, "receives", _IN, mesh.sender(pair)))
    on_the_way = {hop.address for trace in pair.traces for hop in trace.hops}
    through = {owner for address, owner in mesh.owners.items() if address in on_the_way}
    ends += [(name, "forwards", _THROUGH, None) for name in sorted(through - {pair.source, pair.destination})]
    ends += [(name, "bridges", _THROUGH, None) for name in _bridging(mesh, pair)]
    for name, role, hooks, interface in ends:
        for rule in mesh.host(name).lengths:
            is_met = rule.hook in hooks and rule.ip_version == pair.family and rule.above == pair.path_mtu
            is_met = is_met and (rule.to is None or rule.to >= mesh.target)
            if role in ("forwards", "bridges"):
                is_met = is_met and (rule.family == "bridge") == (role == "bridges")
            else:
                is_met = is_met and _meets(mesh.host(name), interface, rule)
            if is_met:
                yield Place(name, role, rule)


def _bridging(mesh: Mesh, pair: Pair) -> Iterator[str]:
    """Hosts with a bridge in the subnet of both ends, of which both may be behind ports."""
    subnet = mesh.group(pair.source, pair.source_address)
    if subnet != mesh.group(pair.destination, pair.destination_address):
        return
    for host in mesh.hosts.values():
        held = [
            address for interface in host.interfaces if interface.kind == "bridge" for address, _ in interface.addresses
        ]
        is_end = host.name in (pair.source, pair.destination)
        if not is_end and subnet in {mesh.group(host.name, address) for address in held}:
            yield host.name


def _meets(host: Host, interface: Interface | None, rule: LengthRule) -> bool:
    """Whether packets of this interface meet the rule: its device is the interface, what that stands on, or a port of
    it; rules of a bridge are for bridges."""
    chain = [] if interface is None else [interface, *host.below(interface)]
    if rule.family == "bridge" and not any(device.kind == "bridge" for device in chain):
        return False
    return rule.device is None or rule.device in {device.name for link in chain for device in (link, *host.ports(link))}
