"""What to type on Linux, and what to ask those who run the switches."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from framegauge.check.judgement.document import Host, Interface, Mesh
from framegauge.check.judgement.groups import as_people_count

__all__ = [
    "allow_too_big", "ask_link", "ask_port", "count_of", "host_names", "interface_text", "listing", "raise_mtu",
    "raise_router", "sentence", "sizes_text", "work_around",
]  # fmt: skip

MANY = 6


def listing(names: Iterable[str], many: int = MANY) -> str:
    """`a, b and c`; beyond a few their number."""
    found = sorted(set(names), key=as_people_count)
    if len(found) > many:
        return f"{', '.join(found[: many - 1])} and {len(found) - many + 1} more"
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def host_names(names: Iterable[str]) -> str:
    """`host a`, or `hosts a and b`."""
    found = sorted(set(names), key=as_people_count)
    return f"host{'s' if len(found) != 1 else ''} {listing(found)}"


def count_of(number: int, noun: str) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def sentence(text: str) -> str:
    """With a capital letter, and the rest as it is."""
    return text[:1].upper() + text[1:]


def sizes_text(limit: int | None) -> str:
    """What gets through, in a sentence about packets."""
    return "large packets vanish (the exact size is not known)" if limit is None or limit < 0 else (
        f"packets above {limit} bytes vanish"
    )  # fmt: skip


def raise_mtu(host: Host, interface: Interface | None, target_mtu: int) -> str:
    """The command for a host's own interface, and for those below it that are too small, lowest first."""
    if interface is None:
        return f"ip link set dev IFACE mtu {target_mtu}  # on {host.name}; `ip route get ADDRESS` names IFACE"
    below = [each for each in reversed(host.below(interface)) if each.mtu < target_mtu and each.overhead is None]
    commands = [f"ip link set dev {shlex.quote(each.name)} mtu {target_mtu}" for each in [*below, interface]]
    return f"{' && '.join(commands)}  # on {host.name}"


def raise_router(mesh: Mesh, address: str | None, target_mtu: int) -> str:
    """The command on a router that runs Linux."""
    owner = mesh.owners.get(address or "")
    whose = f"on host {owner}" if owner is not None else f"if router {address} runs Linux"
    return (
        f"ip link set dev IFACE mtu {target_mtu}  # {whose}: IFACE is its way to the destination "
        "(`ip route get ADDRESS`)"
    )  # fmt: skip


def allow_too_big(family: int) -> str:
    """The rules that let "too big" pass where Linux filters it."""
    if family == 6:
        return "nft insert rule inet filter forward icmpv6 type packet-too-big accept  # into your table and chain"
    return (
        "nft insert rule inet filter forward icmp type destination-unreachable icmp code frag-needed accept"
        "  # into your table and chain"
    )


def work_around(limit: int | None) -> str:
    """What keeps TCP going until the cause is mended."""
    size = limit if limit is not None and limit >= 68 else 1500
    return (
        f"until it is mended: ip route change PREFIX via GATEWAY mtu {size} (as `ip route get ADDRESS` shows it), "
        "or sysctl -w net.ipv4.tcp_mtu_probing=1, which helps TCP only"
    )


def interface_text(interface: Interface) -> str:
    """An interface and what it says, for evidence."""
    driver = f", driver {interface.driver}" if interface.driver else ""
    return f"{interface.name} says {interface.mtu}{driver}"


def ask_port(names: str, target_mtu: int) -> str:
    """About a host's port."""
    return (
        f"Which MTU, or largest frame, has the switch port of {names}, configured and in hardware? It must carry IP "
        f"packets of {target_mtu} bytes (some vendors count headers in their figure). Do its counters of oversize "
        "frames rise?"
    )


def ask_link(where: str, target_mtu: int) -> str:
    """About a link between routers or switches."""
    return (
        f"Which MTU have both ends of the link {where}, and every switch on it? It must carry IP packets of "
        f"{target_mtu} bytes. Do counters of oversize frames or of failed fragmentation rise there?"
    )
