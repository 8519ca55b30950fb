"""The connections of a diagnosis as recorded flows, which a simulation can replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from framegauge.files.recordings import Recorded

__all__ = ["columns", "recorded"]

COLUMNS = ("client", "server", "begin_seconds", "end_seconds", "bytes", "reverse_bytes")


def recorded(document: Mapping[str, Any]) -> Iterator[Recorded]:
    """The connections that carried data, each once, by the clock of the capture that saw it (the first, of several);
    times count from the first capture's beginning.

    What a connection sent in both directions is known, and not in which order: the client's part comes first.
    """
    stamps = {entry["capture"]: entry["begin_seconds"] or 0.0 for entry in document["captures"]}
    first = min(stamps.values(), default=0.0)
    begins = {capture: stamp - first for capture, stamp in stamps.items()}
    seen_again = _seen_again(document)
    for entry in document["connections"]:
        sent, received = entry["bytes"]
        if entry["connection"] in seen_again or not sent + received:
            continue
        begin, end = (begins[entry["capture"]] + entry[name] for name in ("begin_seconds", "end_seconds"))
        yield Recorded(
            _host(entry["client"]), _host(entry["server"]), begin, sent, received, end if end > begin else None
        )


def columns(
    document: Mapping[str, Any], connections: Iterable[Mapping[str, Any]], hosts: Mapping[str, Sequence[str]]
) -> dict[str, list[Any]]:
    """Connections of a run of a study by column. Their ends are named after the hosts that have their addresses; times
    are since 1970, by the clock of the host that captured them."""
    names = {address: name for name, addresses in hosts.items() for address in addresses}
    stamps = {entry["capture"]: entry["begin_seconds"] or 0.0 for entry in document["captures"]}
    table: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for entry in connections:
        ends = (_host(entry[side]) for side in ("client", "server"))
        times = (stamps[entry["capture"]] + entry[f"{name}_seconds"] for name in ("begin", "end"))
        for name, value in zip(COLUMNS, (*(names.get(end, end) for end in ends), *times, *entry["bytes"]), strict=True):
            table[name].append(value)
    return table


def _seen_again(document: Mapping[str, Any]) -> set[int]:
    """Numbers of connections that another capture saw before."""
    joined = document["joined"] or {"connections": ()}
    numbers = (
        [seen["connection"] for seen in connection["seen"] if seen["connection"]]
        for connection in joined["connections"]
    )
    return {number for seen in numbers for number in seen[1:] if number != seen[0]}


def _host(end: str) -> str:
    """The address of "192.0.2.1:443" or "[2001:db8::1]:443"."""
    return end.rpartition(":")[0].strip("[]")
