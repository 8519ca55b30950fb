"""What an interval allows for where one arm lost more of its runs than the other.

If runs are lost for what would have been measured, such as the slowest, those that are left are too good, and their
number does not show it: a fifth lost of one arm is no rare difference with twelve blocks. So the interval takes in the
ratio that would have come out if the additional lost runs of that arm had all been its lowest, or all its highest
(trimming by the excess share: Lee 2009, Review of Economic Studies 76:1071). How low they would have been nobody saw:
as low as the lowest block that was measured, or as the part of a normal distribution that is cut off would be,
whichever is further away (Heckman 1979, Econometrica 47:153, for the mean and spread of what is left). Losses that
both arms share are taken as random; what they could do at most is told beside (`worst_case`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import special

from framegauge.statistics.exclusions import Counts
from framegauge.statistics.pairs import Pairs
from framegauge.statistics.ratio import Ratio, log_ratios

__all__ = ["allowing", "excess", "note", "reach", "said", "widened"]

MOST = 0.9  # of an arm: nothing is judged long before


def allowing(pairs: Pairs, found: Ratio) -> Ratio:
    """The ratio with an interval that allows for the runs that one arm lost more of."""
    share = _excess(pairs)
    if not share or found.low is None:
        return found
    lower, upper = reach(log_ratios(pairs.baseline, pairs.treatment), share)
    return widened(found, lower, upper)


def note(pairs: Pairs) -> list[str]:
    """What is said with a verdict whose interval allows for it."""
    if not _excess(pairs) or pairs.arms is None:
        return []
    return [said("the two sides", pairs.arms[0].slots, pairs.arms[1].slots)]


def said(who: str, first: Counts, second: Counts, unit: str = "block") -> str:
    """The line that an interval allows for what one of two sides lost more of. `unit`: that of the interval."""
    lost = " and ".join("{} of {}".format(*counts) for counts in (first, second))
    return (
        f"{who} lost {lost} runs when first tried: the interval covers the worst case, that these were the lowest or "
        f"the highest, and more {unit}s do not narrow that"
    )


def excess(first: Counts, second: Counts) -> float:
    """The share of its runs that one side lost beyond the share of the other."""
    few, many = sorted(lost / tried if tried else 0.0 for lost, tried in (first, second))
    return min(MOST, (many - few) / (1 - few)) if few < 1 else 0.0


def reach(logs: np.ndarray, share: float) -> tuple[float, float]:
    """How far the mean of these log values may lie too high, and too low, without this share of all."""
    of_normal = _of_normal(share) * float(logs.std(ddof=1))
    mean = float(logs.mean())
    return max(of_normal, share * (mean - float(logs.min()))), max(of_normal, share * (float(logs.max()) - mean))


def widened(found: Ratio, lower: float, upper: float) -> Ratio:
    """A ratio that may lie so much lower and so much higher, in logarithms, than its interval says."""
    if found.low is None or found.high is None:
        return found
    return replace(found, low=found.low * math.exp(-lower), high=found.high * math.exp(upper))


def _excess(pairs: Pairs) -> float:
    return 0.0 if pairs.arms is None else excess(*(arm.slots for arm in pairs.arms))


def _of_normal(share: float) -> float:
    """By how much the mean of a normal distribution lies below that of what is left without its lowest `share`, in
    standard deviations of what is left."""
    edge = float(special.ndtri(share))
    above = math.exp(-edge * edge / 2) / math.sqrt(2 * math.pi) / (1 - share)
    return above / math.sqrt(1 + edge * above - above * above)
