"""The verdict that follows from an interval and a margin."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from framegauge.statistics.ratio import Ratio

__all__ = ["SETTLED", "Unequal", "Verdict", "decide", "exclusions_differ"]


class Verdict(StrEnum):
    """All verdicts. The last two stand for the lack of one, and give the reason."""

    BETTER = "better"
    WORSE = "worse"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    UNDECIDED = "undecided"
    SUSPECT = "suspect"  # exclusions differ between the arms, or the A/A control differs from the baseline
    NOT_JUDGED = "not judged"  # no pair of runs was left, or too many were lost


SETTLED = (Verdict.BETTER, Verdict.WORSE, Verdict.NO_PRACTICAL_DIFFERENCE)


def decide(found: Ratio, margin: float, higher_is_better: bool) -> Verdict:
    """The verdict on an interval. The margin is symmetrical as a factor: 1/(1 + margin) … 1 + margin.

    An interval wholly inside the margin shows equivalence, which the lack of a significant difference would not
    (Schuirmann 1987; at the interval's level this is twice as strict as two one-sided tests).
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


@dataclass(frozen=True)
class Unequal:
    """How the exclusions of two arms differ. `is_shown`: by more than chance; otherwise only more runs can decide."""

    why: str
    is_shown: bool


def exclusions_differ(first: tuple[int, int], second: tuple[int, int]) -> Unequal | None:
    """How the exclusions of two arms, each (excluded, attempted), differ; None if chance is enough to explain them.

    Runs that are lost more often in one arm than in the other are not lost at random, and a comparison of the rest
    would be biased. The criterion is Fisher's exact test, p < 0.05; or more than a quarter against none, where few runs
    would give the test no power.
    """
    if 0 in (first[1], second[1]):
        return None
    shares = sorted((first[0] / first[1], second[0] / second[1]))
    table = np.array([[excluded, attempted - excluded] for excluded, attempted in (first, second)])
    chance = float(stats.fisher_exact(table).pvalue)
    counts = f"{first[0]} of {first[1]} runs were excluded in one arm and {second[0]} of {second[1]} in the other"
    if chance < 0.05:
        return Unequal(f"{counts} (p = {chance:.2g}): they were not lost at random", is_shown=True)
    if shares[0] == 0 and shares[1] > 0.25:
        why = f"{counts} (p = {chance:.2g}): too many to ignore, and too few to tell whether they were lost at random"
        return Unequal(why, is_shown=False)
    return None
