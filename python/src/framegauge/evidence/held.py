"""CPUs of emulated hosts that something else held ahead of all their programs. Record in, figures out.

A hypervisor does that, and so does work in a kernel that gives way to nobody: on some machines a thread of the kernel
takes a few milliseconds of a CPU every half second, and nothing that a rack may do keeps it away. It comes at random
times, to all arms alike, so it is noise, and a run counts until the noise may be as large as an effect (MOST_SHARE).
What it may have taken from either arm is allowed for by the interval (`statistics.held`). A tail is another matter,
since one exchange in a hundred makes it (TAILS_SHARE).
"""

from __future__ import annotations

from collections.abc import Mapping

from framegauge.metrics import METRICS
from framegauge.testbeds.base import Conditions, Json

__all__ = ["LONGEST_SECONDS", "MOST_SHARE", "share", "without_tails"]

MOST_SHARE = 0.02  # of the run; goodput is then some 4 % lower (docs/measured/busy.md)
TAILS_SHARE = 0.005  # of the run: half of the one exchange in a hundred that makes a p99
LONGEST_SECONDS = 20e-3  # at once


def share(conditions: Conditions, record: Json) -> float | None:
    """The share of the run in which the CPU that was held most was held, in pieces of a millisecond or longer. None
    where nothing is emulated, or where the CPU is the limit on purpose and the hosts' own work looks the same."""
    can = conditions.capabilities
    if not can.builds_hosts or (not can.has_fabric and conditions.bits_per_second is None):
        return None
    elapsed = record["measure"]["elapsed_seconds"]
    held_seconds = max((float(cpu["seconds"]) for cpu in record["measure"]["held"]), default=0.0)
    return held_seconds / elapsed if elapsed > 0 else None


def without_tails(
    metrics: Mapping[str, float], conditions: Conditions, record: Json
) -> tuple[dict[str, float], dict[str, str]]:
    """The metrics without those that are made by few exchanges, and why, if a CPU was held too long for them."""
    held_share = share(conditions, record)
    if held_share is None or held_share <= TAILS_SHARE:
        return dict(metrics), {}
    why = f"something else held a CPU of the hosts for {held_share:.2%} of the time, which makes a tail of its own"
    lacking = {name: why for name in metrics if name in METRICS and METRICS[name].is_tail}
    return {name: value for name, value in metrics.items() if name not in lacking}, lacking
