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

from scipy import special

from framegauge.statistics.pairs import Pairs
from framegauge.statistics.ratio import Ratio, log_ratios

__all__ = ["allowing", "note"]

MOST = 0.9  # of an arm: nothing is judged long before


def allowing(pairs: Pairs, found: Ratio) -> Ratio:
    """The ratio with an interval that allows for the runs that one arm lost more of."""
    share = _excess(pairs)
    if not share or found.low is None or found.high is None:
        return found
    logs = log_ratios(pairs.baseline, pairs.treatment)
    of_normal = _of_normal(share) * float(logs.std(ddof=1))
    lower, upper = (
        max(of_normal, share * float(distance)) for distance in (logs.mean() - logs.min(), logs.max() - logs.mean())
    )
    return replace(found, low=found.low * math.exp(-lower), high=found.high * math.exp(upper))


def note(pairs: Pairs) -> list[str]:
    """What is said with a verdict whose interval allows for it."""
    if not _excess(pairs) or pairs.arms is None:
        return []
    lost = " and ".join("{} of {}".format(*arm.slots) for arm in pairs.arms)
    return [
        f"the two sides lost {lost} runs when first tried: the interval covers the worst case, that these were the "
        "lowest or the highest, and more blocks do not narrow that"
    ]


def _excess(pairs: Pairs) -> float:
    """The share of its runs that one arm lost beyond the share of the other."""
    if pairs.arms is None:
        return 0.0
    few, many = sorted(arm.share for arm in pairs.arms)
    return min(MOST, (many - few) / (1 - few)) if few < 1 else 0.0


def _of_normal(share: float) -> float:
    """By how much the mean of a normal distribution lies below that of what is left without its lowest `share`, in
    standard deviations of what is left."""
    edge = float(special.ndtri(share))
    above = math.exp(-edge * edge / 2) / math.sqrt(2 * math.pi) / (1 - share)
    return above / math.sqrt(1 + edge * above - above * above)
