"""Interfaces that carry nothing, at an end of pairs that nothing reaches: told to be down, or without a carrier.

One that was told to be up and has no carrier (IFF_UP without IFF_RUNNING, netdevice(7)) is not helped by being told so
again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Interface, Pair
from framegauge.check.judgement.findings import Command

__all__ = ["Down", "down"]


@dataclass(frozen=True)
class Down:
    """What is down at the ends of some pairs, what shows or mends it, and what to do; nothing where all is up."""

    texts: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    advice: str = ""


def down(case: Case, names: list[str], pairs: list[Pair]) -> Down:
    """Of these hosts. An interface that none of the pairs goes by may be down for good reasons, and is not named."""
    off: list[tuple[str, Interface]] = []
    idle: list[tuple[str, Interface]] = []
    texts: list[str] = []
    for name in sorted(set(names)):
        used = {own.name: own for own in _used(case, name, pairs) if not own.up}.values()
        by_state = [own for own in used if not own.enabled], [own for own in used if own.enabled]
        for group, interfaces, state in zip((off, idle), by_state, ("down", "up without a carrier"), strict=True):
            group += [(name, own) for own in interfaces]
            if interfaces:
                verb = "is" if len(interfaces) == 1 else "are"
                texts.append(f"On host {name} {remedies.listing(own.name for own in interfaces)} {verb} {state}.")
    if off:
        lines = [(f"ip link set dev {shlex.quote(own.name)} up", f"host {name}") for name, own in off]
        return Down(tuple(texts), tuple(Command(*line) for line in lines))
    if not idle:
        return Down()
    look = "see its state, and what it stands on"
    lines = [(f"ip -d link show dev {shlex.quote(own.name)}", f"host {name}") for name, own in idle]
    ends = remedies.listing(f"{own.name} of host {name}" for name, own in idle)
    advice = f"See the cable, and the port at the other end of {ends}: no signal comes from there."
    return Down(tuple(texts), tuple(Command(*line, look) for line in lines), advice)


def _used(case: Case, name: str, pairs: list[Pair]) -> Iterator[Interface]:
    """The interfaces of a host that the pairs go by, and what these stand on."""
    for pair in pairs:
        ends = [
            case.mesh.sender(pair) if pair.source == name else None,
            case.mesh.receiver(pair) if pair.destination == name else None,
        ]
        for interface in ends:
            if interface is not None:
                yield interface
                yield from case.mesh.host(name).below(interface)
