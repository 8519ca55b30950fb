"""What full-size packets between the hosts of a roll-out show: which hosts may go on, and what speaks against it.

A proof is a check (check/run.py): both ways, in each IP version. What is not known is neither a pass nor a fault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from framegauge.check import run as check
from framegauge.check.judgement.findings import CATALOGUE, title
from framegauge.check.judgement.verdict import of_check
from framegauge.check.plan import Asked, Member, Path, Prepared, prepare
from framegauge.rollout.model import Json

__all__ = [
    "HEADERS", "TIMESTAMPS_BYTES", "Proof", "Prover", "groups", "judged", "merged", "neighbours", "new_connections",
]  # fmt: skip

_Key = tuple[str, str, int]  # of a path: both hosts, and the IP version

FLOWS = 8
HEADERS = {4: 40, 6: 60}  # of IP and TCP, in bytes
TIMESTAMPS_BYTES = 12  # of TCP, in every segment
MOST_LINES = 20


@dataclass(frozen=True)
class Proof:
    """What a check of some pairs at one MTU showed.

    `passed`: by host, with how many others full-size packets passed both ways in each IP version that the two have.
    `asked`: with how many they were to.
    `faults`: a line for each path that does not carry them. `unknown`: a line for each of which nothing is known, and
    for each host that failed.
    """

    mtu: int
    document: Json
    passed: Mapping[str, int]
    asked: Mapping[str, int]
    faults: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether everything passed that was probed."""
        return not self.faults and not self.unknown

    def weak(self, needed: int) -> list[str]:
        """The hosts with fewer passing neighbours than are needed, or than were probed of all, if those are fewer; and
        those that were probed with none."""
        return [name for name, count in self.passed.items() if count < max(1, min(needed, self.asked[name]))]

    def lines(self) -> list[str]:
        """What speaks against it, the first of many."""
        problems = [*self.faults, *self.unknown]
        excess = len(problems) - MOST_LINES
        return [*problems[:MOST_LINES], *([f"and {excess} more"] if excess > 0 else [])]

    def as_json(self) -> Json:
        """For the journal: the verdict of every pair, without what is behind it."""
        return {
            "mtu": self.mtu, "verdict": self.document["verdict"], "seconds": self.document["seconds"],
            "pairs": [
                {
                    "source": pair["source"], "destination": pair["destination"], "family": pair["family"],
                    "verdict": pair["verdict"], "path_mtu_bytes": pair["path_mtu_bytes"],
                    "new_mss_bytes": (pair["tcp"] or {}).get("announced_mss_bytes"),
                }
                for pair in self.document["pairs"]
            ],
            "faults": list(self.faults), "unknown": list(self.unknown),
        }  # fmt: skip


def judged(document: Json, mtu: int, sizes: Mapping[_Key, int] = MappingProxyType({})) -> Proof:
    """What the result document of a check says of the hosts and paths in it. `sizes`: of paths for which less than
    `mtu` was to pass."""
    ways: dict[tuple[str, str], list[bool]] = defaultdict(list)
    whole: set[tuple[str, str]] = set()  # pairs between which full-size packets are sent
    faults: list[str] = []
    unknown: list[str] = []
    for pair in document["pairs"]:
        one, other = sorted((pair["source"], pair["destination"]))
        passes = pair["verdict"] == "carries_target"
        ways[one, other].append(passes)
        expected = sizes.get((pair["source"], pair["destination"], pair["family"]), mtu)
        if expected == mtu:
            whole.add((one, other))
        if not passes:
            line = f"{pair['source']} to {pair['destination']} (IPv{pair['family']})"
            size = pair["path_mtu_bytes"]
            what = pair["verdict"].replace("_", " ") + (f" above {size} bytes" if size is not None else "")
            (unknown if pair["verdict"] == "unknown" else faults).append(
                f"{line}: {what}, expected {expected} bytes to pass"
            )
    names = [host["name"] for host in document["hosts"]]
    passed, probed = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for pair in whole:
        results = ways[pair]
        for name in pair:
            probed[name] += 1
            # Both ways were asked for; one that is missing is not proved.
            passed[name] += all(results) and len(results) >= 2
    unknown += [f"{host['name']}: {host['error']}" for host in document["hosts"] if host["error"] is not None]
    blamed = [finding for finding in document["findings"] if faults and finding["where"] and _is_fault(finding["kind"])]
    faults += [f"{title(finding['kind'])}: {finding['where']}" for finding in blamed]
    return Proof(mtu, document, passed, probed, tuple(faults), tuple(unknown))


def _is_fault(kind: str) -> bool:
    """Whether packets are lost because of it; what is held at the old MTU is none."""
    return kind not in CATALOGUE or CATALOGUE[kind].is_fault


def new_connections(proof: Proof, largest: Callable[[str, str], int | None]) -> list[str]:
    """A line for each new connection for which an end did not announce what its routes allow. `largest`: the packet of
    a host to an address, or None for a host that is not in question."""
    lines = []
    for pair in proof.document["pairs"]:
        tcp = pair["tcp"] or {}
        if not tcp.get("connected"):
            continue
        for name, other, mss_bytes in (
            (pair["source"], pair["destination_address"], tcp["announced_mss_bytes"]),
            (pair["destination"], pair["source_address"], tcp["peer_announced_mss_bytes"]),
        ):
            packet = largest(name, other)
            if packet is None:
                continue
            expected = packet - HEADERS[pair["family"]]
            # Once a connection has timestamps, the kernel tells what they leave.
            if mss_bytes not in (None, expected, expected - TIMESTAMPS_BYTES):
                way = f"{pair['source']} to {pair['destination']} (IPv{pair['family']})"
                lines.append(f"{way}: {name} announced an MSS of {mss_bytes} bytes, expected {expected}")
    return lines


def neighbours(names: Sequence[str], needed: int, turn: int) -> set[frozenset[str]]:
    """Pairs in which every host meets at least `needed` others, or all if there are fewer; others with each turn."""
    count = len(names)
    if count - 1 <= needed + 1:
        return {frozenset((one, other)) for one in names for other in names if one != other}
    steps = range(1, count // 2 + 1)
    chosen = [steps[(turn + place) % len(steps)] for place in range(min(len(steps), (needed + 1) // 2 + 1))]
    return {frozenset((names[at], names[(at + step) % count])) for step in chosen for at in range(count)}


def merged(documents: Sequence[Json]) -> Json:
    """The documents of checks of one set of hosts, each of other paths, as that of one check."""
    first, *others = documents
    whole = {**first, "pairs": list(first["pairs"]), "findings": list(first["findings"])}
    for part in others:
        whole["pairs"] += part["pairs"]
        whole["findings"] += [finding for finding in part["findings"] if finding not in whole["findings"]]
        whole["seconds"] += part["seconds"]
        whole["hosts"] = [
            one if one["error"] is not None else other for one, other in zip(whole["hosts"], part["hosts"], strict=True)
        ]
    whole["verdict"] = of_check(whole["pairs"], whole["hosts"])
    return whole


def groups(names: Sequence[str], joined: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The names that are joined in pairs, directly or over others: the hosts of a subnet, say. Each in one group."""
    group = {name: [name] for name in names}
    for pair in joined:
        one, other = (group[name] for name in pair)
        if one is not other:
            one += other
            group |= dict.fromkeys(other, one)
    place = {name: number for number, name in enumerate(names)}
    return [sorted(hosts, key=place.__getitem__) for hosts in {id(hosts): hosts for hosts in group.values()}.values()]


class Prover:
    """Probes between the hosts of a roll-out. `patience_seconds`: how long a host may take to answer. `largest`: the
    packet that a host is to send to an address in the end; by a gateway, say, that is less, and no more is to pass."""

    def __init__(
        self,
        members: Sequence[Member],
        families: Sequence[int],
        patience_seconds: float,
        largest: Callable[[str, str], int],
        seed: int = 0,
    ) -> None:
        self._members, self._patience, self._largest = members, patience_seconds, largest
        self._families, self._turn = tuple(families), seed
        self._prepared: Prepared | None = None

    def mesh(
        self, mtu: int, say: Callable[[float, str], None] = lambda _share, _text: None, blame: bool = True
    ) -> Proof:
        """Every pair (of many hosts those that check/judgement/planner.py chooses); with `blame` which link is at
        fault."""
        request = self._asked(mtu, FLOWS, blame)
        self._prepared = prepare(self._members, request)
        pairs = {(one, other) for one, other in self._prepared.plan.pairs}
        return self._run(self._prepared, request, pairs, say)

    def few(self, mtu: int, needed: int) -> Proof:
        """Each host with `needed` others, or with all if there are fewer."""
        request = self._asked(mtu, 1, blame=False)
        if self._prepared is None:
            self._prepared = prepare(self._members, request)
        pairs = set[frozenset[str]]()
        for group in self._groups(self._prepared, mtu):
            pairs |= neighbours(group, needed, self._turn)
        self._turn += 1
        ways = {(one, other) for pair in pairs for one in pair for other in pair if one != other}
        if self._prepared.plan.kind != "full_mesh":  # of many hosts, the ways to the others are not all known
            ways = set(self._prepared.plan.pairs)
        return self._run(self._prepared, request, ways, lambda _share, _text: None)

    def alone(self, mtu: int) -> list[str]:
        """The hosts that send packets of that size to no other, so that nothing would prove them; after `mesh`."""
        assert self._prepared is not None
        return [name for group in self._groups(self._prepared, mtu) if len(group) == 1 for name in group]

    def _groups(self, prepared: Prepared, mtu: int) -> list[list[str]]:
        whole = [path for path in prepared.paths if self._size(path, mtu) == mtu]
        return groups([member.name for member in self._members], ((path.source, path.destination) for path in whole))

    def _asked(self, mtu: int, flows: int, blame: bool) -> Asked:
        return Asked(mtu, self._families, flows, exact=blame, blame=blame, patience_seconds=self._patience)

    def _run(
        self, prepared: Prepared, request: Asked, pairs: set[tuple[str, str]], say: Callable[[float, str], None]
    ) -> Proof:
        paths = [path for path in prepared.paths if (path.source, path.destination) in pairs]
        errors = prepared.errors if request.flows == FLOWS else {}
        paths += _missing(paths, pairs)
        sizes = {path.key: self._size(path, request.target_mtu) for path in paths}
        documents = []
        for size in sorted(set(sizes.values())):
            equal_paths = [path for path in paths if sizes[path.key] == size]
            subset = replace(prepared, paths=equal_paths, errors=errors)
            documents.append(check.run(subset, replace(request, target_mtu=size), say).document)
        return judged(merged(documents), request.target_mtu, sizes)

    def _size(self, path: Path, mtu: int) -> int:
        """What is to pass there."""
        return mtu if path.ends is None else min(mtu, self._largest(path.source, path.ends.destination))


def _missing(paths: Sequence[Path], pairs: Iterable[tuple[str, str]]) -> list[Path]:
    """Pairs without an address in common: nothing is known of them."""
    known_pairs = {(path.source, path.destination) for path in paths}
    return [Path(one, other, 4, None) for one, other in sorted(pairs) if (one, other) not in known_pairs]
