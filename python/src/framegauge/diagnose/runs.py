"""The diagnosis of one run of a study: where the time of its connections went, each counted once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from framegauge.diagnose import flows
from framegauge.diagnose.kinds import QUALITY
from framegauge.diagnose.run import separate, worth_anywhere

__all__ = ["condensed", "of_run"]

MOST_FINDINGS = 10
Json = dict[str, Any]


def of_run(files: Mapping[str, Path], addresses: Mapping[str, Sequence[str]]) -> Json:
    """The condensed diagnosis of captures of all hosts of a run, by the name of the host."""
    document = separate(list(files.values()))
    return condensed(document, {str(file): name for name, file in files.items()}, addresses)


def condensed(document: Json, hosts: Mapping[str, str], addresses: Mapping[str, Sequence[str]]) -> Json:
    """`seconds` of the connections' lives by cause, their `payload_bytes` both ways, findings by kind, and `flows`: who
    had a connection with whom, and when, by column.

    `hosts` has the host of each file. A connection counts as its sender's host saw it: of the two ends, that which sent
    more. If that is no host of the study, the other end's host counts.
    """
    host_of = {entry["capture"]: hosts[entry["file"]] for entry in document["captures"]}
    counted = {
        entry["connection"]: entry
        for entry in document["connections"]
        if _is_counted(entry, host_of[entry["capture"]], addresses)
    }
    seconds: dict[str, float] = {}
    for entry in counted.values():
        for cause, spent in entry["time"].items():
            seconds[cause] = seconds.get(cause, 0.0) + spent
    worth = list(worth_anywhere(document))
    findings = [entry for entry in worth if entry["connection"] in counted] + list(_of_several(worth))
    kinds: dict[str, Json] = {}
    for entry in findings:
        kind = kinds.setdefault(entry["kind"], {"count": 0, "lost_seconds": 0.0})
        kind["count"] += entry["count"]
        kind["lost_seconds"] += entry["lost_seconds"]
    return {
        "connections": len(counted),
        "payload_bytes": sum(sum(entry["bytes"]) for entry in counted.values()),
        "seconds": seconds,
        "kinds": kinds,
        "flows": flows.columns(document, counted.values(), addresses),
        "findings": [_told(entry, host_of, counted) for entry in findings[:MOST_FINDINGS]],
        "quality": [
            {"host": host_of[entry["capture"]], "kind": entry["kind"]}
            for entry in document["findings"]
            if entry["kind"] in QUALITY
        ],
    }


def _is_counted(connection: Json, host: str, addresses: Mapping[str, Sequence[str]]) -> bool:
    sent = connection["bytes"]
    ends = [_address(connection[end]) for end in ("client", "server")]
    sender, receiver = ends if sent[0] >= sent[1] else ends[::-1]
    is_known = any(sender in host_addresses for host_addresses in addresses.values())
    return (sender if is_known else receiver) in addresses[host]


def _address(end: str) -> str:
    """The address of "address:port" or "[address]:port"."""
    return end.rpartition(":")[0].strip("[]")


def _of_several(worth: Sequence[Json]) -> Iterator[Json]:
    """Findings that are of no single connection: of each kind those of the capture that lost most by it."""
    kinds: dict[str, dict[int, list[Json]]] = {}
    for finding in worth:
        if finding["connection"] is None:
            kinds.setdefault(finding["kind"], {}).setdefault(finding["capture"], []).append(finding)
    for by_capture in kinds.values():
        yield from max(by_capture.values(), key=lambda group: sum(finding["lost_seconds"] for finding in group))


def _told(finding: Json, host_of: Mapping[int, str], counted: Mapping[int, Json]) -> Json:
    connection = counted.get(finding["connection"])
    return {
        "host": host_of[finding["capture"]],
        "kind": finding["kind"],
        "connection": None if connection is None else f"{connection['client']} to {connection['server']}",
        **{key: finding[key] for key in ("count", "lost_seconds", "text", "remedy")},
    }
