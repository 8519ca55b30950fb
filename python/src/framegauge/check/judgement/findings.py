"""The catalogue of findings: every kind there is. docs/reference/mtu-faults.md explains each under the same name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["CATALOGUE", "Finding", "Key", "Kind", "title"]

Key = tuple[str, str, int]


@dataclass(frozen=True)
class Kind:
    """A kind of finding. A fault is why packets are lost; anything else is worth knowing, and no more."""

    title: str
    is_fault: bool = True


CATALOGUE = {
    "host_interface_too_small": Kind("a host's interface is smaller than the target"),
    "nic_maximum_too_small": Kind("a host's device cannot do the target"),
    "switch_or_nic_too_small": Kind("a host's port or NIC drops large frames silently"),
    "router_too_small": Kind("a router says that its link is smaller"),
    "router_drops_silently": Kind("a routed link drops large packets silently"),
    "fragmented_on_the_way": Kind("something fragments packets that must not be fragmented"),
    "icmp_filtered": Kind("a router's \"too big\" is lost"),
    "member_too_small": Kind("one of several parallel paths is smaller"),
    "overlay_overhead": Kind("a tunnel promises more than its underlay carries"),
    "one_direction_only": Kind("a black hole in one direction only; where is unknown"),
    "one_family_only": Kind("a black hole in one IP family only; where is unknown"),
    "black_hole": Kind("a black hole; where is unknown"),
    "direction_unknown": Kind("echoes vanish; in which direction is unknown"),
    "reply_fragmented": Kind("echoes come back in pieces"),
    "unreachable": Kind("not even small packets arrive"),
    "host_unavailable": Kind("a host could not take part", False),
    "could_not_tell": Kind("not enough is known for a verdict", False),
    "stale_path_mtu": Kind("a kernel remembers a smaller path MTU than there is", False),
    "route_mtu_too_small": Kind("a route limits TCP to less than the path carries", False),
    "mss_clamped": Kind("TCP's MSS is clamped", False),
    "mtu_differs": Kind("a host's MTU differs from its neighbours'", False),
    "tunnel_mtu_mismatch": Kind("a tunnel's MTU does not fit what it runs over", False),
    "tcp_probing_off": Kind("TCP would hang in the black hole", False),
    "path_mtu_discovery_off": Kind("a host does not discover path MTUs", False),
    "plain_loss": Kind("small packets are lost, too", False),
}  # fmt: skip


def title(kind: str) -> str:
    """What a kind means, in a few words; a kind of a newer framegauge stands for itself."""
    return CATALOGUE[kind].title if kind in CATALOGUE else kind.replace("_", " ")


@dataclass(frozen=True)
class Finding:
    """One cause: what, where, why it is believed, and what to do."""

    kind: str
    where: str
    hosts: tuple[str, ...]
    pairs: tuple[Key, ...]
    evidence: str
    fix: str
    ask: str | None = None

    def __post_init__(self) -> None:
        assert self.kind in CATALOGUE, self.kind

    @classmethod
    def about(
        cls, kind: str, where: str, hosts: Iterable[str], pairs: Iterable[Key], evidence: str, fix: str,
        ask: str | None = None,
    ) -> Finding:  # fmt: skip
        """With hosts and pairs in order, each once."""
        return cls(kind, where, tuple(sorted(set(hosts))), tuple(sorted(set(pairs))), evidence, fix, ask)

    def as_document(self) -> dict[str, Any]:
        """As it stands in the result document."""
        return {
            "kind": self.kind, "where": self.where, "hosts": list(self.hosts),
            "pairs": [list(pair) for pair in self.pairs], "evidence": self.evidence, "fix": self.fix, "ask": self.ask,
        }  # fmt: skip
