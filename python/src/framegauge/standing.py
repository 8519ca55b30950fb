"""Connections that were open before an MTU was raised: they keep the MSS that they agreed on (RFC 9293, 3.7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["caveats", "connections"]

MOST = 20  # connections that are listed per host
NAMED = 3  # connections that a sentence names
MANY = ("connections were", "they keep their segment size until they are")


def connections(sockets: Iterable[Mapping[str, Any]], address: str) -> dict[str, Any]:
    """The established ones of a host's sockets (`sockets.read`) at one of its addresses: count and first few."""
    found = [
        {"local": each["local"], "remote": each["remote"], "mss_bytes": each["mss_bytes"]}
        for each in sockets
        if each["state"] == "established" and _host(each["local"]) == address
    ]
    return {"count": len(found), "connections": found[:MOST]}


def caveats(runs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One line per host about such connections, from the run in which most of them were open."""
    most: dict[str, Mapping[str, Any]] = {}
    for readings in runs:
        for host, found in (readings.get("old_connections") or {}).items():
            if found["count"] > most.get(host, {"count": 0})["count"]:
                most[host] = found
    for host, found in sorted(most.items()):
        named = [f"{each['local']} to {each['remote']} ({each['mss_bytes']} B)" for each in found["connections"]]
        rest = found["count"] - len(named[:NAMED])
        were, keep = ("connection was", "it keeps its segment size until it is") if found["count"] == 1 else MANY
        yield (
            f"{host}: {found['count']} {were} open when the MTU was raised; {keep} reopened: "
            f"{', '.join(named[:NAMED])}" + (f" and {rest} more" if rest else "")
        )


def _host(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]").removeprefix("::ffff:")
