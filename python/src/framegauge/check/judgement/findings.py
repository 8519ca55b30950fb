"""The catalogue of findings, and what a finding consists of. docs/reference/mtu-faults.md explains each kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from framegauge.check.judgement.hops import Node, Segment

__all__ = ["CATALOGUE", "Command", "Finding", "Key", "Kind", "Row", "title"]

Key = tuple[str, str, int]


@dataclass(frozen=True)
class Kind:
    """A kind of finding. A fault explains why packets are lost; any other kind is only worth knowing."""

    title: str
    is_fault: bool = True


CATALOGUE = {
    "host_interface_too_small": Kind("A host interface has an MTU below the target"),
    "nic_maximum_too_small": Kind("A NIC does not support the target MTU"),
    "dropped_by_rule": Kind("A host's own firewall drops packets by their length"),
    "switch_or_nic_too_small": Kind("A NIC or switch port drops large frames without an error"),
    "router_too_small": Kind("A router reports a link MTU below the target"),
    "router_drops_silently": Kind("A routed link drops large packets without an ICMP error"),
    "fragmented_on_the_way": Kind("Packets are fragmented although DF forbids it"),
    "icmp_filtered": Kind("The ICMP errors of a router are lost"),
    "member_too_small": Kind("One of several parallel links drops large packets"),
    "overlay_overhead": Kind("The underlay is too small for the tunnel"),
    "one_direction_only": Kind("Large packets are lost in one direction; the link is unknown"),
    "one_family_only": Kind("Large packets are lost over one IP version; the link is unknown"),
    "black_hole": Kind("Large packets are lost; the link is unknown"),
    "direction_unknown": Kind("Large echoes are lost; the direction is unknown"),
    "reply_fragmented": Kind("Echo replies return in fragments"),
    "neighbour_table_full": Kind("A kernel has no room for its neighbours' addresses"),
    "unreachable": Kind("No probe arrives, not even a small one"),
    "host_unavailable": Kind("A host could not take part", False),
    "could_not_tell": Kind("Too little data for a verdict", False),
    "stale_path_mtu": Kind("A kernel has cached a path MTU that is too small", False),
    "route_mtu_too_small": Kind("A route limits TCP to less than the path carries", False),
    "mss_clamped": Kind("The MSS of TCP is clamped", False),
    "mtu_differs": Kind("Hosts in one subnet have different MTUs", False),
    "tunnel_mtu_mismatch": Kind("A tunnel's MTU does not fit the interface below it", False),
    "outer_fragmented": Kind("The outer packets of a tunnel are cut", False),
    "rdma_path_mtu": Kind("RDMA has a path MTU of its own", False),
    "tcp_probing_off": Kind("TCP cannot recover from the black hole: MTU probing is off", False),
    "path_mtu_discovery_off": Kind("A host does not use path MTU discovery", False),
    "plain_loss": Kind("Small packets are lost, too", False),
    "rate_limited": Kind("Large packets are lost because they come fast, not because of their size", False),
    "false_too_big": Kind("Packets are reported as too big that arrive", False),
}  # fmt: skip


def title(kind: str) -> str:
    """What a kind means, in a few words; a kind from a newer framegauge is shown by its own name."""
    return CATALOGUE[kind].title if kind in CATALOGUE else kind.replace("_", " ")


@dataclass(frozen=True)
class Command:
    """One line for a shell, the machine that it is for ("host b"), and why it is run there."""

    run: str
    on: str
    purpose: str = ""
    family: int | None = None  # of a command that concerns one IP version only

    def as_document(self) -> dict[str, Any]:
        """As it stands in the result document."""
        return {"run": self.run, "on": self.on, "purpose": self.purpose}


Row = tuple[str, str]  # what was measured or read, and its value


@dataclass(frozen=True)
class Finding:
    """One cause: what, where, the evidence for it, and what to do.

    `summary` is for people and mentions `place`, which differs between IP versions; `facts` are further rows of the
    table of evidence. `spot` is the place in the words of a trace: a link, a router whose next link it is, or a host.
    `limit` is the size above which packets are lost there, where that is known: of several on one path the smallest is
    what is felt.
    """

    kind: str
    where: str
    hosts: tuple[str, ...]
    pairs: tuple[Key, ...]
    evidence: str
    summary: str
    advice: str = ""
    commands: tuple[Command, ...] = ()
    ask: str | None = None
    place: str = ""
    spot: Segment | Node | None = None
    facts: tuple[Row, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        assert self.kind in CATALOGUE, self.kind
        assert self.commands or self.advice, self.kind

    @classmethod
    def about(
        cls, kind: str, where: str, hosts: Iterable[str], pairs: Iterable[Key], evidence: str, summary: str,
        **more: Any,
    ) -> Finding:  # fmt: skip
        """With hosts and pairs in order, each once."""
        return cls(kind, where, tuple(sorted(set(hosts))), tuple(sorted(set(pairs))), evidence, summary, **more)

    @property
    def families(self) -> set[int]:
        """The IP versions of its pairs."""
        return {family for _, _, family in self.pairs}

    @property
    def fix(self) -> str:
        """Commands, one per line, each with its machine; then what no command does."""
        lines = []
        for command in self.commands:
            note = f"on {command.on}: {command.purpose}" if command.purpose else f"on {command.on}"
            lines.append(f"{command.run}  # {_one_line(note)}")
        return "\n".join([*lines, *([f"# {_one_line(self.advice)}"] if self.advice else [])])

    def as_document(self) -> dict[str, Any]:
        """As it stands in the result document, without the table and the path."""
        return {
            "kind": self.kind, "where": self.where, "hosts": list(self.hosts),
            "pairs": [list(pair) for pair in self.pairs], "summary": self.summary, "evidence": self.evidence,
            "fix": self.fix, "advice": self.advice, "commands": [command.as_document() for command in self.commands],
            "ask": self.ask,
        }  # fmt: skip


def _one_line(text: str) -> str:
    """Without line ends: what stands behind a # stays a comment."""
    return "".join(character if character.isprintable() else " " for character in text)
