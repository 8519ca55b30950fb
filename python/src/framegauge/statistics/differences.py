"""The difference of paired values on their own scale: megabits per second, microseconds, core-seconds per gigabyte.

It describes beside the ratio, which is judged: a change of 5 % is another matter for 20 us than for 20 ms. The mean of
the blocks' differences with Student's interval, or its hull with Hall's for skewed metrics (`skewness`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from framegauge.statistics import robust, skewness
from framegauge.statistics.ratio import ALPHA, quantile

__all__ = ["Difference", "estimate"]


@dataclass(frozen=True)
class Difference:
    """Treatment less baseline in the metric's unit, with its interval; `low` and `high` are None below two blocks."""

    mean: float
    low: float | None
    high: float | None


def estimate(
    baseline: Sequence[float],
    treatment: Sequence[float],
    alpha: float = ALPHA,
    hull: float | None = None,
    is_median: bool = False,
) -> Difference:
    """The mean difference of paired values, one pair per block, with its interval at level `alpha`; or the median over
    pairs of blocks (`robust`)."""
    values = np.asarray(treatment, dtype=float) - np.asarray(baseline, dtype=float)
    if is_median:
        return Difference(*robust.middle(values, alpha))
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return Difference(mean, None, None)
    critical, deviation = quantile(count - 1, alpha), float(values.std(ddof=1))
    if hull and deviation:
        return Difference(mean, *skewness.hull(values, critical * hull))
    half = critical * deviation / math.sqrt(count) if deviation else 0.0
    return Difference(mean, mean - half, mean + half)
