"""Programs of a host that may drop packets by their length: XDP, and filters of tc. What they do is not read, so they
are told beside a loss that nothing else of the host explains."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from framegauge.check.judgement.document import Interface, Mesh, Pair
from framegauge.check.judgement.findings import Command, Finding

__all__ = ["UNEXPLAINED", "Program", "beside"]

# Findings of a loss whose reason nobody has told and no reading shows.
UNEXPLAINED = ("switch_or_nic_too_small", "black_hole", "one_direction_only", "one_family_only")
_WORDS = {
    "xdp": ("an XDP program", "takes in", "bpftool net show dev {name}"),
    "tc_ingress": ("a filter of tc", "takes in", "tc -s filter show dev {name} ingress"),
    "tc_egress": ("a filter of tc", "sends", "tc -s filter show dev {name} egress"),
}


@dataclass(frozen=True, order=True)
class Program:
    """One of them: its host and interface, and what kind it is."""

    host: str
    interface: str
    kind: str

    @property
    def text(self) -> str:
        """For people."""
        what, way, _ = _WORDS[self.kind]
        return f"On host {self.host} {what} sees what {self.interface} {way}: it may drop by length."

    @property
    def look(self) -> Command:
        """How to see it."""
        what, _, run = _WORDS[self.kind]
        return Command(run.format(name=shlex.quote(self.interface)), f"host {self.host}", f"see {what}")


def beside(mesh: Mesh, finding: Finding) -> list[Program]:
    """Those of the finding's hosts that meet just the packets that it says are lost."""
    if finding.kind not in UNEXPLAINED:
        return []
    pairs = [mesh.by_key[key] for key in finding.pairs]
    return sorted({program for program in _met(mesh, pairs) if program.host in finding.hosts})


def _met(mesh: Mesh, pairs: Iterable[Pair]) -> Iterator[Program]:
    for pair in (candidate for candidate in pairs if candidate.verdict == "black_hole"):
        yield from _of(mesh, pair.source, mesh.sender(pair), ("tc_egress",))
        yield from _of(mesh, pair.destination, mesh.receiver(pair), ("xdp", "tc_ingress"))


def _of(mesh: Mesh, name: str, interface: Interface | None, kinds: tuple[str, ...]) -> Iterator[Program]:
    """Of the interface, of what it stands on, and of the ports of either."""
    host = mesh.host(name)
    chain = [] if interface is None else [interface, *host.below(interface)]
    for device in [device for link in chain for device in (link, *host.ports(link))]:
        yield from (Program(name, device.name, kind) for kind in device.programs if kind in kinds)
