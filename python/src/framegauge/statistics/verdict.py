"""From an interval to a verdict against a margin."""

from __future__ import annotations

from enum import StrEnum

from framegauge.statistics.ratio import Ratio

__all__ = ["SETTLED", "Verdict", "decide"]


class Verdict(StrEnum):
    """Every verdict there is. The last two say that there is no verdict, and why."""

    BETTER = "better"
    WORSE = "worse"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    UNDECIDED = "undecided"
    SUSPECT = "suspect"  # exclusions differ between the arms, or an A/A control differs from its twin
    NOT_JUDGED = "not judged"  # no pair of runs was left, or too many were lost


SETTLED = (Verdict.BETTER, Verdict.WORSE, Verdict.NO_PRACTICAL_DIFFERENCE)


def decide(found: Ratio, margin: float, higher_is_better: bool) -> Verdict:
    """The verdict on an interval. The margin is symmetrical as a factor: 1/(1 + margin) … 1 + margin.

    Wholly inside is equivalence, shown by the interval and not by the lack of a significant difference
    (Schuirmann 1987; at the interval's level, twice as strict as two one-sided tests need).
    """
    if found.low is None or found.high is None:
        return Verdict.UNDECIDED
    low_edge, high_edge = 1 / (1 + margin), 1 + margin
    if found.low > high_edge:
        return Verdict.BETTER if higher_is_better else Verdict.WORSE
    if found.high < low_edge:
        return Verdict.WORSE if higher_is_better else Verdict.BETTER
    if low_edge <= found.low and found.high <= high_edge:
        return Verdict.NO_PRACTICAL_DIFFERENCE
    return Verdict.UNDECIDED
