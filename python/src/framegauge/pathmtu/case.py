"""What is known so far while causes are being found: which faults are still open, and where traces lost them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from framegauge.pathmtu.document import Mesh, Pair
from framegauge.pathmtu.findings import Finding, Key
from framegauge.pathmtu.hops import Node, Segment, locate, only_bad, passages

__all__ = ["Case"]


class Case:
    """Findings and open faults. A fault is closed by the finding that explains it."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.findings: list[Finding] = []
        self.faults = {pair.key: pair for pair in mesh.pairs if pair.is_fault}
        self.open = dict(self.faults)
        # Where a fault's flows were lost, by traces; empty where they do not say.
        self.segments: dict[Key, set[Segment]] = defaultdict(set)
        self.passed: set[tuple[Node, Node]] = set()
        for pair in mesh.pairs:
            self.passed.update(passages(pair))
        for pair in self.faults.values():
            found = (locate(pair, trace) for trace in pair.traces if trace.bad or not pair.is_partial)
            # Good flows of the pair that passed the very link, and parted from the bad ones later: what looked like
            # loss was a router that answers seldom.
            parted = set(passages(pair)) if only_bad([pair]) else set()
            self.segments[pair.key] = {
                each for each in found if each is not None and (each.after, each.before) not in parted
            }

    def add(self, finding: Finding, closes: Iterable[Key] = ()) -> None:
        """A finding, and the faults that need no other explanation."""
        self.findings.append(finding)
        for key in closes:
            self.open.pop(key, None)

    def ways(self, pair: Pair) -> tuple[str, str]:
        """The subnets that the pair joins."""
        return (
            self.mesh.group(pair.source, pair.source_address),
            self.mesh.group(pair.destination, pair.destination_address),
        )

    def alike(self, known: Iterable[Pair]) -> list[Pair]:
        """Open faults that no trace has placed, between the same subnets and of the same size as known ones."""
        symptoms = {(self.ways(pair), pair.path_mtu, pair.is_partial) for pair in known}
        return [
            pair for key, pair in self.open.items()
            if not self.segments[key] and (self.ways(pair), pair.path_mtu, pair.is_partial) in symptoms
        ]  # fmt: skip

    def remarks(self, pairs: Iterable[Pair], limit: int | None) -> list[str]:
        """What else is known of faults: the other direction, the other family, the sizes."""
        found, by_key = list(pairs), self.mesh.by_key
        lines = []

        def carries(key: Callable[[Pair], Key]) -> bool:
            others = [by_key.get(key(pair)) for pair in found]
            return all(other is not None and other.verdict == "carries_target" for other in others)

        if found and carries(lambda pair: (pair.destination, pair.source, pair.family)):
            lines.append(f"The other direction carries {self.mesh.target}.")
        if found and carries(lambda pair: (pair.source, pair.destination, 10 - pair.family)):
            other = {4: 6, 6: 4}[found[0].family]
            if len({pair.family for pair in found}) == 1:
                lines.append(f"IPv{other} between the same hosts carries {self.mesh.target}.")
        if limit is not None and 0 <= limit < 1280 and any(pair.family == 6 for pair in found):
            lines.append(f"{limit} is below 1280, the least that IPv6 allows (RFC 8200, section 5).")
        if limit in _HINTS:
            lines.append(f"{limit} is often {_HINTS[limit]}.")
        return lines


# No evidence, but where people ought to look first. docs/mtu-faults.md has the sources.
_HINTS: dict[int | None, str] = {
    1300: "an edge site of a cloud (AWS Outposts, Wavelength)",
    1400: "a VPN or a tunnel over 1500",
    1420: "WireGuard over 1500",
    1450: "VXLAN over 1500",
    1460: "Google Cloud's default",
    1492: "PPPoE",
    3900: "Azure within a virtual network, on ConnectX",
    8500: "an AWS Transit Gateway or peering between regions",
    8896: "Google Cloud's maximum",
    8950: "VXLAN over 9000",
    9001: "an AWS VPC",
}
