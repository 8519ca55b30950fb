"""Proof of pacing: record in, failures out.

The kernel paces a socket if SO_MAX_PACING_RATE was set, or with BBR. TCP_INFO of the live sockets tells the rate. What
a flow delivered must be within it, but for what the kernel lets out at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from framegauge import quantities
from framegauge.networks import pacing
from framegauge.networks.aggregates import USUAL_BYTES
from framegauge.testbeds.base import Conditions, Json

__all__ = ["pacing_failures"]

UNPACED_SEGMENTS = 10  # at the start of a connection (`tcp_update_skb_after_send`); then one aggregate is ahead


def pacing_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each host whose sending sockets were paced otherwise than requested, and for flows that delivered
    more than their rate allows."""
    if conditions.pacing is None:
        return
    rate = pacing.bits_per_second(conditions.pacing)
    kernel_rate = None if rate is None else rate // 8 * 8  # the kernel counts whole bytes
    for host, rates in record["workload"].get("pacing", {}).items():
        if list(rates) != [kernel_rate]:
            text = ", ".join(map(_shown, rates)) or "none read"
            yield f"pacing of live sockets on {host}: requested {_shown(kernel_rate)}, found {text}"
    if not record["workload"].get("pacing"):
        yield "pacing of live sockets: not read, expected readings of all sending ends"
    ahead = record["workload"].get("ahead_bytes")
    limit = UNPACED_SEGMENTS * max(conditions.first_mtus) + USUAL_BYTES
    if ahead is not None and ahead > limit:
        yield f"bytes that a flow delivered before its rate allows them: expected at most {limit}, found {ahead}"


def _shown(rate: int | None) -> str:
    return "none" if rate is None else quantities.print_bits_per_second(rate)
