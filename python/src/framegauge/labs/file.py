"""Lab files: a network with faults, and the truth about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framegauge.files import yaml as yaml_file
from framegauge.files.types import Problem
from framegauge.labs.model import EVERYBODY, Check, Lab, Network, Truth as Line, families_of
from framegauge.labs.plan import plan

__all__ = ["LabFile", "Truth", "is_lab", "json_schema", "load", "parse"]


@dataclass(frozen=True)
class Truth:
    """The truth about the path from one host to another in one family; if some flows are bad, `path_mtu_bytes` is
    theirs."""

    source: str
    destination: str
    family: int
    verdict: str
    path_mtu_bytes: int | None
    configured_mtu: int | None
    bad_share: float


@dataclass(frozen=True)
class LabFile:
    """A lab as read from its file; `truth` has one entry per pair and family, in the order of hosts."""

    about: str
    network: Network
    truth: list[Truth]
    check: Check


def load(path: str | Path) -> LabFile:
    """The lab in a YAML file; StudyError lists all problems, and is raised for an unreadable file, too."""
    return parse(yaml_file.read(path, "a lab file"), str(path))


def parse(text: str, name: str) -> LabFile:
    """The lab in `text`; `name` stands for the file in messages."""
    lab = yaml_file.parse(text, name, Lab, "lab", _without_a_way)
    return LabFile(lab.about, lab.network, _expanded(lab), lab.check)


def is_lab(path: str | Path) -> bool:
    """Whether a file is a lab and not a study: only a lab has the key `network`."""
    return "network" in yaml_file.keys(yaml_file.read(path, "a study or a lab file"), str(path))


def json_schema() -> Mapping[str, Any]:
    """JSON Schema (2020-12) of a lab file, for editors."""
    return yaml_file.json_schema(Lab, "lab")


def _without_a_way(lab: Lab) -> Iterator[Problem]:
    """Problems with statements about paths that the network does not have."""
    layout, hosts = plan(lab.network), lab.network.hosts()
    for name in hosts:
        for key in ("routes", "remembers"):
            for index, promise in enumerate(getattr(lab.network.nodes[name], key)):
                if not any(layout.way(name, promise.to, family) for family in families_of(promise.family)):
                    where = ("network", "nodes", name, key, index, "to")
                    yield Problem(where, promise.to, f"a host that {name} can reach")
    for index, line in enumerate(lab.truth):
        for source, destination, family in _pairs(hosts, line):
            if (layout.way(source, destination, family) is None) != (line.verdict == "unreachable"):
                statement = f"{line.verdict} over IPv{family} from {source} to {destination}"
                yield Problem(
                    ("truth", index), statement, "unreachable where there is no path, and only there (or family: …)"
                )
                break


def _pairs(hosts: list[str], line: Line) -> Iterator[tuple[str, str, int]]:
    def named(value: str | list[str]) -> list[str]:
        return hosts if value == EVERYBODY else [value] if isinstance(value, str) else value

    for source in named(line.source):
        for destination in named(line.destination):
            if source != destination:
                yield from ((source, destination, family) for family in families_of(line.family))


def _expanded(lab: Lab) -> list[Truth]:
    hosts = lab.network.hosts()
    # The last line about a pair replaces earlier ones.
    by_pair = {pair: line for line in lab.truth for pair in _pairs(hosts, line)}
    order = {name: number for number, name in enumerate(hosts)}
    return [
        _truth(*pair, by_pair[pair])
        for pair in sorted(by_pair, key=lambda pair: (order[pair[0]], order[pair[1]], pair[2]))
    ]


def _truth(source: str, destination: str, family: int, line: Line) -> Truth:
    bad = 0.0 if line.verdict == "carries_target" else 1.0
    return Truth(
        source,
        destination,
        family,
        line.verdict,
        line.path_mtu_bytes,
        line.path_mtu_bytes if line.configured_mtu is None else line.configured_mtu,
        bad if line.bad_share is None else line.bad_share,
    )
