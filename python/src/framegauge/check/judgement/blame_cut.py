"""Outer packets of tunnels that are cut, as counters of both ends show: of fragments where the sender cuts them, and of
packets that were put together where a router on the way does.

Large packets arrive inside such a tunnel: the far end puts the outer packets together before it looks inside. Unless
they are told otherwise (`df` in ip-link(8)), VXLAN and Geneve of Linux send outer packets of IPv4 without DF: any
router on the way may cut them (RFC 791, section 2.3; RFC 7348, section 4.3), and nobody is told.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable

from framegauge.check.judgement import remedies, sealed
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Interface, Pair
from framegauge.check.judgement.findings import Command, Finding

__all__ = ["cut", "lost_pieces"]

LEAST_PIECES = 2  # of a packet that is cut


def cut(case: Case) -> None:
    """`outer_fragmented`: a host made at least two fragments of each large packet that it sent through a tunnel; or one
    put together as many packets as large ones came to it through tunnels, which no host of the check had cut."""
    sent: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    came: dict[str, list[Pair]] = defaultdict(list)
    for pair in case.mesh.pairs:
        tunnel = case.mesh.sender(pair)
        if tunnel is not None and _encapsulates(tunnel) and pair.verdict == "carries_target":
            sent[pair.source, tunnel.name].append(pair)
            came[pair.destination].append(pair)
    cutting: set[str] = set()
    for (name, interface), pairs in sorted(sent.items()):
        host = case.mesh.host(name)
        tunnel, flows = host.interface(interface), sum(pair.probed for pair in pairs)
        if tunnel is not None and host.fragments is not None and host.fragments >= LEAST_PIECES * flows:
            cutting.add(name)
            _finding(case, name, tunnel, pairs, host.fragments, flows)
    for name, pairs in sorted(came.items()):
        if cutting.isdisjoint(pair.source for pair in pairs):
            _on_the_way(case, name, pairs)


def _on_the_way(case: Case, name: str, pairs: list[Pair]) -> None:
    """What came to a host through tunnels was cut behind its sender, by the count of what the host put together."""
    reassembled, flows = case.mesh.host(name).reassembled, sum(pair.probed for pair in pairs)
    in_pieces = any(pair.fragmented for pair in case.mesh.pairs if pair.destination == name)
    if reassembled is None or reassembled < flows or in_pieces:
        return
    sources = sorted({pair.source for pair in pairs})
    tunnels = [tunnel for pair in pairs if (tunnel := case.mesh.sender(pair)) is not None]
    overheads, through = {tunnel.overhead for tunnel in tunnels}, remedies.listing(tunnel.name for tunnel in tunnels)
    least = f"{case.mesh.target} bytes and the headers of the tunnel"
    if len(overheads) == 1 and (overhead := overheads.pop()) is not None:
        least = f"{case.mesh.target + overhead} bytes"
    from_hosts = remedies.host_names(sources)
    text = (
        f"While the check ran, host {name} put {reassembled} packets together from fragments; {flows} packets of "
        f"{case.mesh.target} bytes came to it through {through} from {from_hosts}. If nothing "
        f"else came to it in fragments, a router on the way cuts them: it has a link of less than {least}. {CUT}"
    )
    case.add(
        Finding.about(
            "outer_fragmented", f"the underlay from {from_hosts} to host {name}", [name], [pair.key for pair in pairs],
            text, text,
            advice=f"Every link of the underlay needs {least}, or the tunnel a smaller MTU at both ends. To find the "
            "small link: framegauge check with the outer addresses.",
            ask=f"Which link between {from_hosts} and host {name} carries IP packets of less than {least}?",
            facts=(
                ("Packets that the host put together", f"{reassembled}"),
                ("Large packets through tunnels", f"{flows}"),
            ),
        )
    )  # fmt: skip


def lost_pieces(case: Case, pairs: Iterable[Pair]) -> list[str]:
    """That what is lost inside of a tunnel was cut outside, by its own host: then its pieces may be what is lost."""
    texts = []
    by_host: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.verdict == "black_hole" and _encapsulates(case.mesh.sender(pair)):
            by_host[pair.source].append(pair)
    for name, lost in sorted(by_host.items()):
        fragments = case.mesh.host(name).fragments
        if fragments is not None and fragments >= LEAST_PIECES * sum(pair.bad for pair in lost):
            texts.append(
                f"While the check ran, host {name} made {fragments} fragments, as of outer packets that are cut: their "
                "pieces may be what is lost, since many firewalls drop fragments."
            )
    return texts


def _encapsulates(interface: Interface | None) -> bool:
    return interface is not None and (interface.overhead is not None or sealed.is_sealed(interface))


CUT = (
    "The outer packets are cut and put together again: fragments cost CPU time, one that is lost loses the whole "
    "packet, and many firewalls drop them."
)


def _finding(case: Case, name: str, tunnel: Interface, pairs: list[Pair], fragments: int, flows: int) -> None:
    text = (
        f"While the check ran, host {name} made {fragments} fragments; through {tunnel.name} it sent {flows} packets "
        f"of {case.mesh.target} bytes, which arrived."
    )
    commands, advice, sizes_text = _mended(case, name, tunnel)
    text = f"{text} {sizes_text} {CUT}"
    case.add(
        Finding.about(
            "outer_fragmented", f"tunnel {tunnel.name} of host {name}", [name], [pair.key for pair in pairs], text,
            text, commands=commands, advice=advice,
            facts=(("Fragments that the host made", f"{fragments}"), ("Large packets through the tunnel", f"{flows}")),
        )
    )  # fmt: skip


def _mended(case: Case, name: str, tunnel: Interface) -> tuple[tuple[Command, ...], str, str]:
    """Commands, advice, and what is known of the sizes; of a tunnel whose overhead nobody tells nothing is reckoned."""
    if tunnel.overhead is None:
        sizes_text = f"{tunnel.name} ({tunnel.kind}) adds headers of which the kernel does not tell the size."
        return (), sealed.advice(tunnel, case.mesh.target), sizes_text
    target, on, own = case.mesh.target, f"host {name}", shlex.quote(tunnel.name)
    needed = target + tunnel.overhead
    below = [interface for interface in case.mesh.host(name).below(tunnel) if interface.overhead is None]
    small = [interface for interface in below if interface.mtu < needed]
    read = "".join(f" {remedies.interface_text(interface)}." for interface in small)
    sizes_text = f"With {tunnel.overhead} bytes of overhead they need an underlay of {needed}.{read}"
    fits = max(min((interface.mtu for interface in small), default=needed) - tunnel.overhead, 68)
    commands = [
        Command(f"ip link set dev {shlex.quote(interface.name)} mtu {needed}", on, "raise the underlay")
        for interface in small
    ]  # fmt: skip
    if fits < tunnel.mtu:
        commands.append(Command(f"ip link set dev {own} mtu {fits}", on, "or fit the tunnel to the underlay"))
    advice = f"Every link of the underlay needs {needed} bytes, or the tunnel a smaller MTU at both ends."
    return tuple(commands), advice, sizes_text
