"""Difference in differences: what a change did to those that had it, less what the time did to those that had not.

Each unit (a client, a host) has a value before a moment and one after it; some units were changed at that moment. The
effect of a run is the mean logarithm of after / before of the changed units, less that of the others (Card and Krueger
1994, American Economic Review 84:4, in logarithms). Assumption: without the change all units would have gone the same
way ("parallel trends"). The run is the unit of the interval: units of one run share its machine.

A verdict follows from the interval and a margin, as between arms: inside the margin means equivalence (two one-sided
tests; Schuirmann 1987), which the lack of a significant change would not show.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from framegauge.statistics.mean import mean
from framegauge.statistics.ratio import Ratio, estimate
from framegauge.statistics.verdict import EQUAL, LEAST_FOR_EQUALITY, Verdict, decide

__all__ = ["Effect", "Unit", "alone", "effect", "judge", "of_run"]


@dataclass(frozen=True)
class Unit:
    """One of those that were seen before and after; values are above 0."""

    changed: bool
    before: float
    after: float


@dataclass(frozen=True)
class Effect:
    """A ratio, 1 for no effect; `interval` has 95 %, None with fewer than three runs."""

    ratio: float
    interval: tuple[float, float] | None
    runs: int


def of_run(units: Iterable[Unit]) -> float | None:
    """The logarithm of the effect in one run; None without units of both kinds. Without others it is not this
    difference: see `before / after` of the changed ones then."""
    trends: dict[bool, list[float]] = {True: [], False: []}
    for unit in units:
        if unit.before > 0 and unit.after > 0:
            trends[unit.changed].append(math.log(unit.after / unit.before))
    if not trends[True] or not trends[False]:
        return None
    return statistics.fmean(trends[True]) - statistics.fmean(trends[False])


def alone(units: Iterable[Unit]) -> float | None:
    """The logarithm of after / before of the changed units in one run, whatever the others did; None without any."""
    logs = [math.log(unit.after / unit.before) for unit in units if unit.changed and unit.before > 0 and unit.after > 0]
    return statistics.fmean(logs) if logs else None


def effect(runs: Sequence[float]) -> Effect | None:
    """The effect over runs, from the logarithm of each; None without a run."""
    if not runs:
        return None
    average = mean(runs)
    ends = None if average.interval is None else (math.exp(average.interval[0]), math.exp(average.interval[1]))
    return Effect(math.exp(average.mean), ends, average.runs)


def judge(runs: Sequence[float], margin: float, higher_is_better: bool, alpha: float) -> tuple[Ratio, Verdict]:
    """The verdict on the logarithms of runs at level `alpha`, with the interval that decides it. ValueError without a
    run."""
    ratio = estimate([1.0] * len(runs), [math.exp(log) for log in runs], alpha)
    verdict = decide(ratio, margin, higher_is_better)
    return ratio, Verdict.UNDECIDED if verdict in EQUAL and ratio.blocks < LEAST_FOR_EQUALITY else verdict
