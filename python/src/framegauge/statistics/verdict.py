"""The verdict that follows from an interval and a margin."""

from __future__ import annotations

from enum import StrEnum

from framegauge.statistics.ratio import Ratio

__all__ = [
    "BASELINE_FAILS", "DIFFERENT", "EQUAL", "FINAL", "LEAST_FOR_EQUALITY", "SETTLED", "WITHOUT_FIGURES", "Verdict",
    "decide", "edges",
]  # fmt: skip

BASELINE_FAILS = "the baseline does not work"  # how a warning begins

# Fewer blocks show too little of what happens seldom: 8 without a stall leave stalls in up to 31 % of runs possible.
LEAST_FOR_EQUALITY = 8


class Verdict(StrEnum):
    """All verdicts. `suspect` and `not judged` stand for the lack of one, and give the reason."""

    BETTER = "better"
    WORSE = "worse"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    NOT_WORSE = "not worse"  # by more than the margin: only where a study asks no more than that
    UNDECIDED = "undecided"
    SUSPECT = "suspect"  # such as: exclusions differ between the arms, or the A/A control differs from the baseline
    NOT_JUDGED = "not judged"  # no pair of runs was left, or too many were lost
    DOES_NOT_WORK = "does not work"  # in runs of the arm, mostly in all, the workload did not get what it asked for


DIFFERENT = (Verdict.BETTER, Verdict.WORSE)
EQUAL = (Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.NOT_WORSE)  # these need LEAST_FOR_EQUALITY blocks
SETTLED = (*DIFFERENT, *EQUAL)
FINAL = (*SETTLED, Verdict.DOES_NOT_WORK)  # more runs are not needed
WITHOUT_FIGURES = (Verdict.NOT_JUDGED, Verdict.DOES_NOT_WORK)  # about which a control that differs tells nothing


def edges(margin: float) -> tuple[float, float]:
    """The ratios at which a margin ends: it is symmetrical as a factor."""
    return 1 / (1 + margin), 1 + margin


def decide(found: Ratio, margin: float, higher_is_better: bool, not_worse: bool = False) -> Verdict:
    """The verdict on an interval.

    An interval wholly inside the margin shows equivalence, which the lack of a significant difference would not
    (Schuirmann 1987; at the interval's level this is twice as strict as two one-sided tests). With `not_worse`, it is
    enough that the interval excludes the edge on the worse side (non-inferiority; ICH E9 asks for the same level).
    """
    if found.low is None or found.high is None:
        return Verdict.UNDECIDED
    low_edge, high_edge = edges(margin)
    if found.low > high_edge:
        return Verdict.BETTER if higher_is_better else Verdict.WORSE
    if found.high < low_edge:
        return Verdict.WORSE if higher_is_better else Verdict.BETTER
    if low_edge <= found.low and found.high <= high_edge:
        return Verdict.NO_PRACTICAL_DIFFERENCE
    if not_worse and (found.low >= low_edge if higher_is_better else found.high <= high_edge):
        return Verdict.NOT_WORSE
    return Verdict.UNDECIDED
