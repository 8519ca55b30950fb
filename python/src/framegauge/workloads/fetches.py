"""Fetches of a shuffle: what those of each distance got, and those of the few beside those of the many. Pure.

Each fetching host has few and many of its own (`networks.entrances`): on a fat tree the few are its neighbour at the
same switch. A group's goodput is the payload of all its fetches over the time of all: what a fetch got while it lasted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.networks.entrances import FEW, MANY, MID
from framegauge.testbeds.base import Json
from framegauge.workloads.transfers import share_of_few

__all__ = ["Fetch", "evidence", "metrics"]


@dataclass(frozen=True)
class Fetch:
    """What a host had from another, and how long it took."""

    to: str
    server: str
    bytes: int
    seconds: float


def evidence(fetches: Sequence[Fetch], receivers: Mapping[str, Json]) -> Json:
    """`fetches_by_links`: number, payload and goodput of the fetches by the links between their hosts; and `sharing`
    (evidence.few) if there are fetches of the few, and of the many.

    `receivers` has for each fetching host the others, by `groups` and by `links` (evidence.few). Those within a host,
    and those that brought nothing, do not count.
    """
    between = [entry for entry in fetches if entry.to in receivers and entry.to != entry.server and entry.bytes]
    by_links: dict[int, list[Fetch]] = {}
    sides: dict[str, list[Fetch]] = {FEW: [], MID: [], MANY: []}
    distances = {host: _places(entry) for host, entry in receivers.items()}
    for fetch in between:
        links, side = distances[fetch.to][fetch.server]
        by_links.setdefault(links, []).append(fetch)
        sides[side].append(fetch)
    result: Json = {"fetches_by_links": [{"links": links, **_summed(by_links[links])} for links in sorted(by_links)]}
    if sides[FEW] and sides[MANY] and all(_rate(sides[name]) for name in (FEW, MANY)):
        groups = [{"name": name, **_group(members)} for name, members in sides.items() if members]
        result["sharing"] = {"groups": groups}
    return result


def _places(receiver: Json) -> dict[str, tuple[int, str]]:
    """By sending host: the links to it, and its side."""
    sides = {host: name for name, hosts in receiver["groups"].items() for host in hosts}
    return {host: (int(links), sides[host]) for links, hosts in receiver["links"].items() for host in hosts}


def _rate(group: Sequence[Fetch]) -> float:
    """Bits per second of a fetch, while it lasted."""
    seconds = sum(fetch.seconds for fetch in group)
    return 8.0 * sum(fetch.bytes for fetch in group) / seconds if seconds > 0 else 0.0


def _summed(group: Sequence[Fetch]) -> dict[str, Any]:
    return {
        "fetches": len(group), "bytes": sum(fetch.bytes for fetch in group), "goodput_bits_per_second": _rate(group),
    }  # fmt: skip


def _group(group: Sequence[Fetch]) -> dict[str, Any]:
    senders = list(dict.fromkeys(fetch.server for fetch in group))
    return {"senders": senders, "flows": len(group), "goodput_bits_per_second": _rate(group), "floored": False}


def metrics(record: Json) -> dict[str, float]:
    """share_of_few: the goodput of a fetch of the few over that of the many, where `sharing` has both."""
    share = share_of_few(record) if "sharing" in record else None
    return {} if share is None else {"share_of_few": share}
