"""What runs beside other programs on the hosts' CPUs do to a ratio of short times.

A CPU that runs another program wakes a thread later than an idle one: an exchange of a fraction of a millisecond took
19 to 44 us longer beside busy loops and a compiler (docs/measured/busy.md), though the hosts went before them. A
constant in both arms does not cancel in their ratio; it pulls the ratio towards 1. How large it was in a run is not
measured, and it is not quite the same at each MTU; one common to both of up to 75 us explains all ratios that were
seen. So the interval takes in every ratio that a constant between 0 and the metric's `wakes_seconds` explains: with x
the ratio that was measured, A the baseline and c the constant, (x A - c) / (A - c).
"""

from __future__ import annotations

from dataclasses import replace

from framegauge.metrics import METRICS
from framegauge.statistics.pairs import Pairs
from framegauge.statistics.ratio import Ratio

__all__ = ["allowing", "note"]


def _most_seconds(pairs: Pairs) -> float:
    """The largest constant in the metric, of an exchange that takes `_typical` seconds; 0 where there is none."""
    return METRICS[pairs.metric].wakes_seconds if pairs.is_shared else 0.0


def _typical(pairs: Pairs) -> float:
    """The least time of an exchange at the baseline; of a rate, the time that one connection takes for one."""
    if METRICS[pairs.metric].unit == "per_second":
        return float(pairs.example.conditions.get("connections") or 1) / max(pairs.baseline)
    return min(pairs.baseline)


def allowing(pairs: Pairs, measured: Ratio) -> Ratio:
    """The ratio with an interval that allows for the constant; without one if the constant may be all that there is."""
    most = _most_seconds(pairs)
    if not most or measured.low is None or measured.high is None:
        return measured
    typical, is_rate = _typical(pairs), METRICS[pairs.metric].unit == "per_second"
    low, high = (1 / measured.high, 1 / measured.low) if is_rate else (measured.low, measured.high)
    if most >= typical or most >= low * typical:
        return replace(measured, low=None, high=None)
    ends = [end for bound in (low, high) for end in (bound, (bound * typical - most) / (typical - most))]
    low, high = (1 / max(ends), 1 / min(ends)) if is_rate else (min(ends), max(ends))
    return replace(measured, low=low, high=high)


def note(pairs: Pairs) -> list[str]:
    """What is said with a verdict whose interval allows for the constant."""
    most = _most_seconds(pairs)
    if not most:
        return []
    return [
        "other programs used the hosts' CPUs, beside which each exchange takes longer at any MTU: the interval "
        f"allows for up to {most * 1e6:.0f} us"
    ]
