"""Whether the readings of a host fit together, each number of which the pipe allows: a host may be in other hands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["problem"]

Json = Mapping[str, Any]
LEAST_MTU = 68  # RFC 791
MOST_BYTES = 1 << 20  # of a segment


def problem(readings: Json, targets: Sequence[int]) -> str | None:
    """What does not fit, in one line; None: everything does."""
    return next(_problems(readings, targets), None)


def _problems(readings: Json, targets: Sequence[int]) -> Iterator[str]:
    if not readings["seconds"] > 0:
        yield f"seconds: found {readings['seconds']}, expected more than 0"
    names = [interface["interface"] for interface in readings["interfaces"]]
    for interface in readings["interfaces"]:
        if interface["mtu"] < LEAST_MTU:
            yield f"mtu: found {interface['mtu']}, expected {LEAST_MTU} at least"
    mtus = {interface["interface"]: interface["mtu"] for interface in readings["interfaces"]}
    for sample in (readings["sample"] or {"interfaces": []})["interfaces"]:
        if sample["interface"] not in names:
            yield "sample: found an interface that is none of those that were read"
        else:
            yield from _of_sample(sample, mtus[sample["interface"]], len(targets))


def _of_sample(sample: Json, mtu: int, targets: int) -> Iterator[str]:
    for name in ("sent", "received"):
        total = sample[name]
        if not total["aggregates"] <= total["packets"] or (total["packets"] and not total["aggregates"]):
            yield f"{name}: found {total['packets']} packets of {total['aggregates']} aggregates"
        if not total["tcp_packets"] <= total["packets"]:
            yield f"{name}: found more packets of TCP than packets"
        if sum(kind[name]["packets"] for kind in sample["foreign"]) > total["others"]:
            yield f"{name}: found more packets by kind than the {total['others']} without TCP"
    for way in sample["ways"]:
        size = way["full_bytes"]
        if size and not 2 <= size <= min(mtu, MOST_BYTES):
            yield f"full_bytes: found {size}, expected 2 to the MTU of {mtu}"
        for name in ("sent", "received"):
            if size and any(entry["end_bytes"] >= size for entry in way[name]["messages"]):
                yield f"messages: found an end that is no smaller than a full segment of {size} bytes"
            yield from _of_acknowledgements(way[name], targets)
    for entry in sample["connections"]:
        for name in ("sent", "received"):
            figures = entry[name]
            if {len(figures["after"]), len(figures["between"])} != {targets}:
                yield f"connections: found figures for other than {targets} MTUs"


def _of_acknowledgements(way: Json, targets: int) -> Iterator[str]:
    known, left = way.get("acknowledgements_known", 0), way.get("acknowledgements_left", [])
    if known > way["acknowledgements"]:
        yield f"acknowledgements_known: found {known} of {way['acknowledgements']}"
    if known and len(left) != targets:
        yield f"acknowledgements_left: found figures for other than {targets} MTUs"
    if any(not entry["least"] <= entry["likely"] <= entry["most"] for entry in left):
        yield "acknowledgements_left: found a likely number beyond its bounds"
    merged = way.get("answers_merged", [])
    if merged and len(merged) not in (0, targets):
        yield f"answers_merged: found figures for other than {targets} MTUs"
    if any(not entry["likely"] <= entry["most"] <= way["small"] for entry in merged):
        yield f"answers_merged: found more than the {way['small']} small segments"
