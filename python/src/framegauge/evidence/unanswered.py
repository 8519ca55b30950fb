"""Whether a workload worked at all: the clients that nothing was answered, and what the switch's ports say of why.

That a client gets no answer is what the study found, and no fault of the run: with hosts of several MTUs on one network
some of what they send cannot arrive. Record in, lines out.
"""

from __future__ import annotations

from collections.abc import Iterator

from framegauge.networks.topologies import node_of
from framegauge.testbeds.base import Json

__all__ = ["unanswered"]

MOST_PORTS = 3  # that a line names


def unanswered(record: Json) -> Iterator[str]:
    """A line for each client that asked and was answered nothing, with the ports at it, or else any, that dropped
    frames larger than their MTU."""
    for host, each in record["workload"].get("answers", {}).items():
        if each["asked"] and not each["answered"]:
            yield "; ".join([f"{host}: 0 of {each['asked']} operations answered", *_dropped(record, host)])


def _dropped(record: Json, host: str) -> Iterator[str]:
    fabric = record["measure"]["fabric"]
    ports = [each for each in (fabric["ports"] if fabric is not None else ()) if each.get("giant_frames")]
    near = [each for each in ports if host in map(node_of, each["port"].partition("#")[0].split(">"))]
    for each in (near or ports)[:MOST_PORTS]:
        count = each["giant_frames"]
        frames = "1 frame that is" if count == 1 else f"{count} frames that are"
        yield f"port {each['port']} dropped {frames} too large for it"
