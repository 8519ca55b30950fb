"""Runs that moved nothing: whether one side has more of them than the other, or than a network in order has.

A run without a byte is no low value of goodput, and none of a rare kind: it is what a black hole looks like. So it is
counted, and not left out. Where the other side has none, the question is whether a network in order would show as many:
one in 200 at most, which is generous (the binomial tail). Where both sides have some, it is Fisher's exact test.
"""

from __future__ import annotations

import numpy as np

from framegauge.statistics.exclusions import Counts
from framegauge.statistics.verdict import Verdict

__all__ = ["ALPHA", "ASSUMPTION", "IN_ORDER", "judge"]

IN_ORDER = 0.005  # the share of runs that fail for other reasons than the network
ALPHA = 0.01  # over all comparisons of one kind (no byte, or a stall), beside the 5 % of the others
# Of runs without a byte, and of those that stalled.
ASSUMPTION = (
    "a network in order leaves at most 1 run in 200 without a byte "
    "(binomial; Fisher's exact test where both have some)",
    "a network in order stalls at most 1 run in 200 (binomial; Fisher's exact test where both have some)",
)


def judge(base: Counts, new: Counts, comparisons: int = 1) -> Verdict:
    """The verdict on (failed, attempted) of both sides, as one of so many `comparisons`. A side without runs is not
    judged; without a failure on either there is no difference."""
    if not base[1] or not new[1]:
        return Verdict.NOT_JUDGED
    if not base[0] and not new[0]:
        return Verdict.NO_PRACTICAL_DIFFERENCE
    for more, less, verdict in ((new, base, Verdict.WORSE), (base, new, Verdict.BETTER)):
        if _chance(more, less) <= ALPHA / comparisons:
            return verdict
    return Verdict.UNDECIDED


def _chance(more: Counts, less: Counts) -> float:
    """The probability of as many failures in `more`, if it were as the other side or in order."""
    from scipy import stats  # takes half a second, and most comparisons have no failures

    if not less[0]:
        return float(stats.binom.sf(more[0] - 1, more[1], IN_ORDER))
    table = np.array([[failed, attempted - failed] for failed, attempted in (more, less)])
    return float(stats.fisher_exact(table, alternative="greater").pvalue)
