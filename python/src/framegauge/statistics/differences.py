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
    most: float | None = None,
) -> Difference:
    """The mean difference of paired values, one pair per block, with its interval at level `alpha`; or the median over
    pairs of blocks (`robust`). What no values up to `most` can differ by is cut off, as it is of ratios."""
    before, after = np.asarray(baseline, dtype=float), np.asarray(treatment, dtype=float)
    if is_median:
        return Difference(*robust.middle(after - before, alpha))
    mean = float((after - before).mean())
    if len(before) < 2:
        return Difference(mean, None, None)
    low, high = _ends(after - before, alpha, hull)
    if most is not None:
        low, high = max(low, _ends(after - most, alpha, hull)[0]), min(high, _ends(most - before, alpha, hull)[1])
    return Difference(mean, low, high)


def _ends(values: np.ndarray, alpha: float, hull: float | None) -> tuple[float, float]:
    """The interval of the mean of two or more differences."""
    mean, count = float(values.mean()), len(values)
    critical, deviation = quantile(count - 1, alpha), float(values.std(ddof=1))
    if hull and deviation:
        return skewness.hull(values, critical * hull)
    half = critical * deviation / math.sqrt(count) if deviation else 0.0
    return mean - half, mean + half
