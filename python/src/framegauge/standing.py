"""Connections that stood before an MTU was raised: they keep the segments that they agreed on (RFC 9293, 3.7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["caveats", "connections"]

MOST = 20  # listed a host
NAMED = 3  # in a sentence
MANY = ("connections", "keep their segments until they are")


def connections(sockets: Iterable[Mapping[str, Any]], address: str) -> dict[str, Any]:
    """Those of a host's sockets (`sockets.read`) that stand at this address of its: so many, and the first of them."""
    found = [
        {"local": each["local"], "remote": each["remote"], "mss_bytes": each["mss_bytes"]}
        for each in sockets
        if each["state"] == "established" and _host(each["local"]) == address
    ]
    return {"count": len(found), "connections": found[:MOST]}


def caveats(runs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What to know of them, a line a host: of the readings of runs, the most that stood at once."""
    most: dict[str, Mapping[str, Any]] = {}
    for readings in runs:
        for host, found in (readings.get("old_connections") or {}).items():
            if found["count"] > most.get(host, {"count": 0})["count"]:
                most[host] = found
    for host, found in sorted(most.items()):
        named = [f"{each['local']} to {each['remote']} ({each['mss_bytes']} B)" for each in found["connections"]]
        rest = found["count"] - len(named[:NAMED])
        stood, keep = ("connection", "keeps its segments until it is") if found["count"] == 1 else MANY
        yield (
            f"{host}: {found['count']} {stood} stood when the MTU was raised, and {keep} made anew: "
            f"{', '.join(named[:NAMED])}" + (f" and {rest} more" if rest else "")
        )


def _host(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]").removeprefix("::ffff:")
