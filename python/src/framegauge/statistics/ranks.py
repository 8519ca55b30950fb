"""Verdicts on values of which some are 0, such as retransmits: they have no ratio, but they can be compared.

Assumption: runs are independent, and the values of NEW are distributed as those of BASE times a factor (or are larger,
or smaller, throughout). Whether the factor is beyond an edge of the margin is decided by the rank sum of NEW divided by
that edge, and BASE (Wilcoxon 1945, Biometrics Bulletin 1:80; Mann & Whitney 1947), each side of each edge at half the
level, as an interval would.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framegauge.statistics.verdict import Verdict

__all__ = ["ASSUMPTION", "decide"]

ASSUMPTION = "runs are independent; some values are 0, so the sides are compared by ranks (Wilcoxon's rank sum)"


def decide(base: Sequence[float], new: Sequence[float], margin: float, higher_is_better: bool, alpha: float) -> Verdict:
    """The verdict at level `alpha`; the values must be at least 0."""
    if not any((*base, *new)):
        return Verdict.NO_PRACTICAL_DIFFERENCE
    edge = 1 + margin
    if _is_larger(new, base, edge, alpha):
        return Verdict.BETTER if higher_is_better else Verdict.WORSE
    if _is_larger(base, new, edge, alpha):
        return Verdict.WORSE if higher_is_better else Verdict.BETTER
    if _is_larger(new, base, 1 / edge, alpha) and _is_larger(base, new, 1 / edge, alpha):
        return Verdict.NO_PRACTICAL_DIFFERENCE
    return Verdict.UNDECIDED


def _is_larger(first: Sequence[float], second: Sequence[float], factor: float, alpha: float) -> bool:
    """Whether `first` is larger than `factor` times `second`, with an error of half of `alpha`."""
    from scipy import stats  # takes half a second, and few comparisons need it

    test = stats.mannwhitneyu(np.asarray(first) / factor, np.asarray(second), alternative="greater")
    return bool(test.pvalue <= alpha / 2)
