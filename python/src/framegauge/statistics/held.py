"""What CPUs that something else held may have done to a ratio.

They are held at random times, in all arms alike, which is noise, and the interval has it. But one arm may have been
held longer than the other, or have lost more by the same pieces, and that is no noise. A run lacks up to 3.6 times the
share of it that was held, and at one MTU up to 2.4 times more than at another (docs/measured/busy.md). So the interval
takes in every ratio that is possible if either arm lost as much more than the other, beyond what is small beside the
margin anyhow.
"""

from __future__ import annotations

from dataclasses import replace

from framegauge.metrics import METRICS, SMALL
from framegauge.statistics.pairs import Pairs
from framegauge.statistics.ratio import Ratio

__all__ = ["allowing", "note"]

MOST = 4.0  # a run lacks up to so many times the share of it that was held
APART = 2.5  # of a share that both arms were held, one lacks up to so many times more than the other


def allowing(pairs: Pairs, measured: Ratio) -> Ratio:
    """The ratio with an interval that allows for what either arm may have lost more than the other."""
    before, after = _lost(pairs)
    if not (before or after) or measured.low is None or measured.high is None:
        return measured
    if METRICS[pairs.metric].higher_is_better:  # what was held made the figure smaller, else larger
        return replace(measured, low=measured.low * (1 - before), high=measured.high / (1 - after))
    return replace(measured, low=measured.low * (1 - after), high=measured.high / (1 - before))


def note(pairs: Pairs) -> list[str]:
    """What is said with a verdict whose interval allows for it."""
    if not any(_lost(pairs)):
        return []
    return [  # the same for all comparisons, so that it is said once
        "something else held a CPU of the hosts now and then: the interval allows for what one arm may have lost more "
        "than the other"
    ]


def _lost(pairs: Pairs) -> tuple[float, float]:
    """The share of its figure that each side may have lost more than the other, beyond a small part of the margin."""
    if not METRICS[pairs.metric].is_total:
        return 0.0, 0.0
    shared_loss = APART * min(pairs.held)
    before, after = (shared_loss + MOST * (share - min(pairs.held)) - SMALL * pairs.margin for share in pairs.held)
    return max(0.0, before), max(0.0, after)
